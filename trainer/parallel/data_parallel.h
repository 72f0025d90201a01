// The baseline of one process: threads that each have a replica and a part of the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/named_tensor.h"
#include "trainer/parallel/traffic.h"

namespace muster::trainer {

// What torch.nn.DataParallel does, on CPU threads: in each step the first replica's parameters and
// buffers are copied to the others, each replica runs its chunk of the batch forward and backward
// in a thread of its own, and the gradients are added up in the first one's, where the optimizer
// finds them. The other replicas' gradients are undefined after a step.
//
// The threads live for a step. Those of LibTorch inside each (at::set_num_threads) come on top: one
// is right when there are as many replicas as processors.
class DataParallel {
 public:
  struct Replica {
    std::vector<NamedTensor> parameters;  // that need gradients
    std::vector<NamedTensor> buffers;
  };
  // Computes the loss of the places [begin, end) of the batch with replica `replica`, which has the
  // thread to itself. So scaled that the sum over chunks is the loss of the batch: with a mean,
  // each chunk's sum divided by the size of the whole batch.
  using Loss = std::function<at::Tensor(int replica, std::int64_t begin, std::int64_t end)>;

  // All replicas have the same shapes in the same order, and there is at least one.
  explicit DataParallel(std::vector<Replica> replicas);

  // One step's gradients, added to those that the first replica's parameters have already. Returns
  // the loss of the batch. A batch of fewer places than replicas leaves some of them idle. Rethrows
  // the first exception of a thread, after all have ended.
  double ForwardBackward(std::int64_t batch_size, const Loss& loss);

  // In total over the replicas: 2(N-1) times the model's bytes for each step (CentralBytes).
  const Traffic& traffic() const { return traffic_; }

 private:
  const std::vector<Replica> replicas_;
  Traffic traffic_;
};

}  // namespace muster::trainer
