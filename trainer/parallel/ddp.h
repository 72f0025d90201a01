// Data-parallel training: each rank has the whole model and a part of each batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/process_group.h"
#include "trainer/comm/shm_options.h"
#include "trainer/named_tensor.h"
#include "trainer/parallel/traffic.h"

namespace muster::trainer {

// How gradients are compressed on their way between ranks. On CPUs float16 and bfloat16 halve the
// bytes but cost more time than they save over loopback and shared memory.
enum class CommHook { kNone, kFloat16, kBFloat16 };

// The names and defaults are those of torch.nn.parallel.DistributedDataParallel, but for
// gradient_as_bucket_view, which saves a copy and is False there.
struct DdpOptions {
  double bucket_cap_mb = 25;
  double first_bucket_mb = 1;  // the first full bucket starts the communication, so it is smaller
  bool gradient_as_bucket_view = true;
  // Look, after each forward pass, which parameters the outputs depend on. Costs a walk through the
  // graph; needed when a step leaves some of them out.
  bool find_unused_parameters = false;
  // Every step uses the same parameters in the same way. Allows layers that are used twice with
  // re-entrant autograd, and parameters that are never used.
  bool static_graph = false;
  bool broadcast_buffers = true;  // rank 0's to all before each forward pass
  CommHook comm_hook = CommHook::kNone;
  ShmOptions shm;  // with Comm::kShm
};

// Mean times of a step in milliseconds, over the first ten and every hundredth after them: c10d's
// Logger's figures. All 0 before the second step.
//
// A bucket that backward()'s own thread averages is a part of backward() to the Logger: its time
// counts in all three of backward, communication and overlap, although nothing was computed
// meanwhile. With kShm that is the last bucket when no other is still being averaged, so with a
// single bucket the overlap is all of the communication, and nothing was hidden.
struct DdpTimings {
  double forward_ms = 0;
  double backward_ms = 0;       // until nothing was left but to wait for buckets
  double communication_ms = 0;  // from the first full bucket until the last was averaged
  double overlap_ms = 0;        // the part of communication_ms that lies within backward_ms
  std::vector<std::int64_t> bucket_bytes;  // as they are now, in the order of reduction
};

// Some parameters took no part in a step. What() is one sentence that names them and the flag to
// set. The user has to change something (exit code 2).
class UnusedParametersError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// PyTorch's DistributedDataParallel, on the same engine (c10d::Reducer): while backward() runs,
// gradients are gathered in buckets, and each full bucket is averaged over the ranks in the
// background. After the first step buckets are made anew in the order in which gradients came.
//
// The steps of a training loop stay the caller's:
//   clear the gradients; output = ddp.Forward(...); compute the loss; loss.backward(); take the
//   optimizer's step.
// and with gradient accumulation, all but the last part of a batch go under a NoSync:
//   { const auto no_sync = ddp.NoSync(); ddp.Forward(...); ...; loss.backward(); }
//   ddp.Forward(...); ...; loss.backward();          // averages the sum of all parts
//
// backward() returns when all gradients are averaged, and throws when a peer is lost. Gradients may
// be views into the buckets: clear them by resetting the tensors (as zero_grad(set_to_none=True)
// does), not with detach_(). One thread; every rank makes the same calls. To be destroyed before
// the group.
class DistributedDataParallel {
 public:
  // Checks that all ranks have parameters of the same shapes (else throws), then gives every rank
  // the values of rank 0's parameters and buffers. `parameters` are those that need gradients.
  // Throws std::runtime_error with one sentence when shared memory cannot be had. `group` must
  // outlive this object.
  DistributedDataParallel(const std::vector<NamedTensor>& parameters,
                          const std::vector<NamedTensor>& buffers, ProcessGroup& group,
                          const DdpOptions& options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // Returns what `forward` returns, and makes the next backward() average the gradients. Without
  // gradients (NoGradGuard) it only runs `forward`. Use what it returns rather than what `forward`
  // has put aside: with static_graph it is not the same tensor. Throws UnusedParametersError when
  // the step before left parameters out and no option allows that; then the gradients of that step
  // were not averaged.
  at::Tensor Forward(const std::function<at::Tensor()>& forward);
  // The same for several outputs.
  std::vector<at::Tensor> Forward(const std::function<std::vector<at::Tensor>()>& forward);

  // While the returned object lives, Forward() and backward() leave the gradients of each rank its
  // own, adding up. They are averaged with those of the first step after it.
  class NoSyncScope {
   public:
    ~NoSyncScope() { *sync_ = before_; }
    NoSyncScope(const NoSyncScope&) = delete;
    NoSyncScope& operator=(const NoSyncScope&) = delete;

   private:
    friend class DistributedDataParallel;
    explicit NoSyncScope(bool* sync) : sync_(sync), before_(*sync) { *sync = false; }
    bool* const sync_;
    const bool before_;
  };
  [[nodiscard]] NoSyncScope NoSync() { return NoSyncScope(&sync_); }

  DdpTimings timings() const;
  // Of this rank's gradients. steps counts backward passes that were averaged.
  Traffic traffic() const;

 private:
  struct Engine;
  bool sync_ = true;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace muster::trainer
