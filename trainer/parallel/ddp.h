// Data-parallel training: each rank has the whole model and a part of each batch.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/core/named_tensor.h"
#include "trainer/dist/process_group.h"

namespace muster::trainer {

// PyTorch's DistributedDataParallel, on the same engine (c10d::Reducer): while backward() runs,
// gradients are gathered in buckets, and each full bucket is averaged over the ranks in the
// background.
//
// The steps of a training loop stay the caller's:
//   clear the gradients; output = ddp.Forward(...); compute the loss; loss.backward(); take the
//   optimizer's step.
// backward() returns when all gradients are averaged, and throws when a peer is lost. Gradients are
// views into the buckets: clear them by resetting the tensors (as zero_grad(set_to_none=True)
// does), not with detach_(). One thread; every rank makes the same calls.
class DistributedDataParallel {
 public:
  // Checks that all ranks have parameters of the same shapes (else throws), then gives every rank
  // the values of rank 0's parameters and buffers. `parameters` are those that need gradients; each
  // must be used in every forward pass. `group` must outlive this object.
  DistributedDataParallel(const std::vector<NamedTensor>& parameters,
                          const std::vector<NamedTensor>& buffers, ProcessGroup& group);
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // Returns what `forward` returns, and makes the next backward() average the gradients. Buffers
  // are first made those of rank 0 again, as Python does. Without gradients (NoGradGuard) it only
  // runs `forward`.
  at::Tensor Forward(const std::function<at::Tensor()>& forward);

 private:
  struct Engine;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace muster::trainer
