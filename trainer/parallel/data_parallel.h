// Data parallelism beside DDP: threads with replicas, ranks that average their weights, and batch
// normalization over the batches of all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/models/network.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// The single-process baseline: threads that each have a replica of the model and a part of the
// batch.

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

// Batch normalization over the batches of all ranks.

// A batch normalization layer's tensors, of C values each. `weight` and `bias` may be undefined.
// `running_mean` and `running_var` are updated in training, or both undefined.
struct BatchNormState {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
};

// torch.nn.SyncBatchNorm's training step. Normalizes `input` (N x C x ..., where N may differ
// between ranks and be 0 on some) with the mean and variance over all ranks' inputs, and moves the
// running mean and variance towards them by `momentum` (the variance unbiased, with n/(n-1), as in
// Python). Statistics of half and bfloat16 inputs are computed in float. Differentiable. All ranks
// must call it, and run backward() through it, in the same order. Throws what c10d throws.
//
// Without `counts`, this rank's rows are normalized but excluded from the statistics: a rank
// without samples in a step passes some of another rank's.
at::Tensor SyncBatchNormTraining(const at::Tensor& input, BatchNormState state, double momentum,
                                 double eps, Group& group, bool counts = true);

// Batch normalization over the samples of all ranks, for --sync-bn.

// Replaces a model's own batch normalization. Belongs to one rank and one thread. The group, whose
// members must make the same calls, must outlive it, and it must outlive the model's passes.
class SyncedBatchNorm {
 public:
  explicit SyncedBatchNorm(Group& group) : group_(group) {}
  SyncedBatchNorm(const SyncedBatchNorm&) = delete;
  SyncedBatchNorm& operator=(const SyncedBatchNorm&) = delete;

  // For Model::SetBatchNorm().
  BatchNormFunction function();

  // Call it before each pass: whether the samples are this rank's own. Otherwise they only keep it
  // in step with the others, and must not enter any statistic.
  void SetCounts(bool counts) { counts_ = counts; }

 private:
  Group& group_;
  bool counts_ = true;
};

}  // namespace muster::trainer
