// The baseline without gradient exchange: ranks train alone and periodically average their weights.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/group.h"
#include "trainer/comm/traffic.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// Local SGD: every rank takes optimizer steps on its own part of the data, and after every `period`
// steps all parameters that require a gradient are replaced by their mean over the ranks. The
// optimizer's state is not averaged. One thread; every rank must make the same calls.
class ParameterAveraging {
 public:
  // Copies rank 0's parameters and buffers to every rank. `group` must outlive this object. Throws
  // what its operations throw.
  ParameterAveraging(const std::vector<NamedTensor>& parameters,
                     const std::vector<NamedTensor>& buffers, Group& group, std::int64_t period);
  ParameterAveraging(const ParameterAveraging&) = delete;
  ParameterAveraging& operator=(const ParameterAveraging&) = delete;

  // Call this after each step of the optimizer. Returns whether the parameters were averaged.
  bool AfterStep();
  // Makes the model the same on every rank. Call it before the model is evaluated or saved.
  // Averages the parameters if they have changed since the last average, and the floating-point
  // buffers, such as the running statistics of batch normalization. Other buffers stay as they are.
  void Finish();

  // What `group` has counted for Use::kParameters. `steps` counts optimizer steps, so that bytes
  // per step can be compared with DDP's.
  Traffic traffic() const;

 private:
  void Average(const std::vector<NamedTensor>& named);

  const std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  Group& group_;
  const Traffic before_;  // what the group had counted when this was made
  const std::int64_t period_;
  std::int64_t steps_ = 0;
  bool parameters_differ_ = false;  // between ranks
  bool buffers_differ_ = false;
};

}  // namespace muster::trainer
