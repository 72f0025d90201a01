// The baseline without gradient exchange: ranks train alone and meet in the mean of their weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/comm/process_group.h"
#include "trainer/named_tensor.h"
#include "trainer/parallel/traffic.h"

namespace muster::trainer {

class AllReducer;

// Local SGD: every rank takes optimizer steps on its own part of the data, and after every `period`
// of them all parameters are replaced by their mean over the ranks. The optimizer's state stays
// each rank's. One thread; every rank makes the same calls.
class ParameterAveraging {
 public:
  // Gives every rank rank 0's parameters and buffers. `group` must outlive this object. Throws as
  // AllReducer does.
  ParameterAveraging(const std::vector<NamedTensor>& parameters,
                     const std::vector<NamedTensor>& buffers, ProcessGroup& group,
                     std::int64_t period);
  ~ParameterAveraging();
  ParameterAveraging(const ParameterAveraging&) = delete;
  ParameterAveraging& operator=(const ParameterAveraging&) = delete;

  // To be called after each step of the optimizer. True when this one averaged.
  bool AfterStep();
  // Averages now: at the end of the training, before parameters are looked at.
  void Average();

  // `steps` counts the optimizer's, so that moved_bytes_per_step() compares with DDP's.
  Traffic traffic() const;

 private:
  const std::vector<NamedTensor> parameters_;
  const int ranks_;
  const std::int64_t period_;
  std::int64_t steps_ = 0;
  std::int64_t payload_bytes_ = 0;
  const std::unique_ptr<AllReducer> reducer_;
};

}  // namespace muster::trainer
