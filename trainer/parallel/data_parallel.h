// The single-process baseline: threads that each have a replica of the model and a part of the
// batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/traffic.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// What torch.nn.DataParallel does, on CPU threads. In each step the first replica's parameters and
// buffers are copied to the others, each replica runs forward and backward on its chunk of the
// batch in its own thread, and the gradients are summed into the first replica's, where the
// optimizer finds them. After a step the other replicas have no gradients.
//
// Threads are started for each step. LibTorch's threads within each (at::set_num_threads) come on
// top: use one when there are as many replicas as processors.
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

}  // namespace muster::trainer
