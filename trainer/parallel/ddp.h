// Data-parallel training: each rank has the whole model and processes a part of each batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/host/transport.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// How gradients are compressed when they are sent between ranks. On CPUs, float16 and bfloat16
// halve the bytes but, over loopback and shared memory, cost more time than they save.
enum class CommHook { kNone, kFloat16, kBFloat16 };

// Names and defaults are those of torch.nn.parallel.DistributedDataParallel, except that
// gradient_as_bucket_view, which saves a copy, is False there.
struct DdpOptions {
  double bucket_cap_mb = 25;
  double first_bucket_mb = 1;  // smaller, so that communication starts early
  bool gradient_as_bucket_view = true;
  // After each forward pass, find the parameters on which the outputs do not depend. Needed when a
  // step may leave some parameters unused; costs a traversal of the graph.
  bool find_unused_parameters = false;
  // Promises that every step uses the same parameters in the same way. Allows layers that are used
  // twice with re-entrant autograd, and parameters that are never used.
  bool static_graph = false;
  bool broadcast_buffers = true;  // from rank 0 before each forward pass
  CommHook comm_hook = CommHook::kNone;
  ShmOptions shm;  // for Comm::kShm
};

// Mean times per step in milliseconds, as measured by c10d's Logger over the first ten steps and
// every hundredth after them. All are 0 before the second step.
//
// When the thread that runs backward() averages a bucket itself, the Logger counts that time as
// backward, communication and overlap, although nothing is computed meanwhile. With kShm this is
// the case for the last bucket if no other is pending. So with a single bucket, the overlap equals
// the communication although none of it was hidden.
struct DdpTimings {
  double forward_ms = 0;
  double backward_ms = 0;       // until only waiting for buckets was left
  double communication_ms = 0;  // from the first full bucket until the last was averaged
  double overlap_ms = 0;        // the part of communication_ms that lies within backward_ms
  std::vector<std::int64_t> bucket_bytes;  // current sizes, in the order of reduction
};

// Some parameters were not used in a step. what() is one sentence that names them and says what to
// change. The user has to act (exit code 2).
class UnusedParametersError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// PyTorch's DistributedDataParallel, on the same engine (c10d::Reducer): while backward() runs,
// gradients are collected in buckets, and each full bucket is averaged over the ranks in the
// background. After the first step the buckets are rebuilt in the order in which gradients arrived.
//
// The caller keeps its training loop:
//   clear the gradients; output = ddp.Forward(...); compute the loss; loss.backward(); take the
//   optimizer's step.
// For gradient accumulation, run all but the last part of a batch under NoSync():
//   { const auto no_sync = ddp.NoSync(); ddp.Forward(...); ...; loss.backward(); }
//   ddp.Forward(...); ...; loss.backward();          // averages the sum of all parts
//
// backward() returns when all gradients are averaged, and throws when a peer is lost. Gradients may
// be views into the buckets: clear them by resetting the tensors (as zero_grad(set_to_none=True)
// does), not with detach_(). One thread; every rank must make the same calls. Destroy it before the
// group.
class DistributedDataParallel {
 public:
  // Checks that all ranks have parameters of the same shapes, and throws if not. Then copies rank
  // 0's parameters and buffers to every rank. Of `parameters` at least one must require a gradient;
  // the others are not changed from then on, nor exchanged. `gradient_order` is the result of
  // GradientOrder() in the run that this one resumes, the same on every rank; it is ignored unless
  // it lists exactly the parameters that require a gradient. Throws std::runtime_error with one
  // sentence if shared memory is not available. `group` must outlive this object.
  DistributedDataParallel(const std::vector<NamedTensor>& parameters,
                          const std::vector<NamedTensor>& buffers, Group& group,
                          const DdpOptions& options = {},
                          const std::vector<std::string>& gradient_order = {});
  ~DistributedDataParallel();
  DistributedDataParallel(const DistributedDataParallel&) = delete;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = delete;

  // Runs `forward`, returns its result, and makes the next backward() average the gradients. Under
  // NoGradGuard it only runs `forward`. Use the returned tensor, not one that `forward` stored
  // elsewhere: with static_graph they differ. Throws UnusedParametersError when the previous step
  // left parameters unused and no option allows that; the gradients of that step were then not
  // averaged.
  at::Tensor Forward(const std::function<at::Tensor()>& forward);
  // The same for several outputs.
  std::vector<at::Tensor> Forward(const std::function<std::vector<at::Tensor>()>& forward);

  // Copies rank 0's buffers to every rank, even without options.broadcast_buffers. Afterwards every
  // rank has the model that rank 0 would save. Every rank calls it, between steps.
  void BroadcastBuffers();

  // The names of the parameters in the order in which their gradients arrive, which is the order of
  // the buckets. Empty before the first step, with static_graph before the second, and always when
  // buckets are never rebuilt (find_unused_parameters).
  //
  // With three ranks or more, the rounding of a sum depends on the gradient's position in its
  // bucket. A resumed run that gets this order starts with the same buckets, and so computes the
  // same sums, bit for bit. Every rank calls it, between steps. Throws what Forward() throws.
  std::vector<std::string> GradientOrder();

  // While an instance exists, Forward() and backward() accumulate gradients on each rank without
  // averaging them. The first step after it averages the accumulated gradients.
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
  // This rank's gradient traffic. `steps` counts the Forward() calls outside of NoSync(), each of
  // which leads to one averaged backward pass. The bytes are those that `group` has counted for
  // Use::kGradients since this object was made.
  Traffic traffic() const;

 private:
  struct Engine;
  bool sync_ = true;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace muster::trainer
