// The single-process baseline: threads that each have a replica of the model and a part of the
// batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// What torch.nn.DataParallel does, on CPU threads. In each step the first replica's parameters and
// buffers are copied to the others, each replica runs forward and backward on its chunk of the
// batch in its own thread, and the gradients are summed into the first replica's, where the
// optimizer finds them. After a step the other replicas have no gradients.
//
// Threads are started for each step. Each also uses LibTorch's threads (at::set_num_threads): use a
// single one if there are as many replicas as processors.
class DataParallel {
 public:
  struct Replica {
    std::vector<NamedTensor> parameters;  // those that need gradients
    std::vector<NamedTensor> buffers;
  };
  // Computes the loss of samples [begin, end) of the batch with replica `replica`, on that
  // replica's own thread. It must be scaled so that the sum over chunks is the loss of the batch:
  // for a mean, the chunk's sum divided by the size of the whole batch.
  using Loss = std::function<at::Tensor(int replica, std::int64_t begin, std::int64_t end)>;

  // There must be at least one replica, and all must have the same shapes in the same order.
  explicit DataParallel(std::vector<Replica> replicas);

  // Computes one step's gradients and adds them to those the first replica's parameters already
  // have. Returns the loss of the batch. If the batch has fewer samples than there are replicas,
  // some stay idle. When threads throw, rethrows the exception of the lowest-numbered replica,
  // after all threads have ended.
  double ForwardBackward(std::int64_t batch_size, const Loss& loss);

  // Total over all replicas: 2(N-1) times the bytes of the parameters for each step in which every
  // replica has work (CentralBytes). Buffers are not counted.
  const Traffic& traffic() const { return traffic_; }

 private:
  const std::vector<Replica> replicas_;
  Traffic traffic_;
};

// The baseline without gradient exchange: ranks train separately and periodically average their
// weights.

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
  const Traffic before_;  // the group's count at construction
  const std::int64_t period_;
  std::int64_t steps_ = 0;
  bool parameters_differ_ = false;  // between ranks
  bool buffers_differ_ = false;
};

}  // namespace muster::trainer
