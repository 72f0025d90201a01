// How ranks or threads share the work of a training.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/comm/world.h"
#include "trainer/compat/tensor_memory.h"
#include "trainer/data/batch_loader.h"
#include "trainer/data/dataset.h"
#include "trainer/io/state_dict.h"
#include "trainer/models/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/ddp.h"
#include "trainer/runtime/named_tensor.h"
#include "trainer/runtime/trace_recorder.h"

namespace muster::trainer {

// Measures a model on a batch.

// Sums over the predictions of a rank's own samples. Tensors hold one number each, of any type, on
// the rank's device, for which nobody has waited.
struct BatchSums {
  double predictions = 0;  // their number
  at::Tensor loss;
  std::vector<at::Tensor> metrics;  // those of the model's objective, in their order
};

// The sums of `batch`. `model` is on `device`, and in evaluation mode. Throws what LibTorch throws.
BatchSums MeasureBatch(const LoadedBatch& batch, const Options& options, const at::Device& device,
                       Model& model);

// The same of whatever computes the scores of a batch, which it is given on `device`.
BatchSums MeasureScores(const LoadedBatch& batch, const Options& options, const at::Device& device,
                        const std::function<at::Tensor(const Batch& batch)>& compute);

// `batch` on `device`, where it may be already, as the model needs it: real numbers converted to
// `dtype`, whole ones unchanged.
Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype);

// What a rank keeps from step to step, measured beside the formula.

// Bytes of parameters, gradients, the optimizer's state and averages; 0 where nothing is known.
struct StateMemory {
  std::int64_t counted = 0;  // by the allocator of tensors, with whatever else came with training
  std::int64_t formula = 0;  // StateBytes()
};

// The numbers that are kept for each parameter besides it and its gradient: by an optimizer, and
// the average of --ema if there is one.
inline int KeptNumbers(const OptimizerOptions& optimizer, bool averaged) {
  const int average = averaged ? 1 : 0;
  if (optimizer.own.rule) return static_cast<int>(optimizer.own.rule->kept.size()) + average;
  if (optimizer.kind == OptimizerKind::kAdamW) return 2 + average;
  return (optimizer.momentum > 0 ? 1 : 0) + average;
}

// Counts what has come since it was made, and the parameters of `parameter_bytes` that were there
// already. On the CPU alone. One thread.
class StateMeter {
 public:
  explicit StateMeter(std::int64_t parameter_bytes)
      : others_(compat::TensorBytes() - parameter_bytes) {}

  // Call it when a backward pass has ended and activations are gone. The first one comes before an
  // optimizer has its state; of the others the least counts, as threads of Gloo's and of loaders
  // may hold what they are done with for a moment more.
  void Measure() {
    const std::int64_t now = compat::TensorBytes() - others_;
    bytes_ = ++measured_ <= 2 ? now : std::min(bytes_, now);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t others_;
  int measured_ = 0;
  std::int64_t bytes_ = 0;
};

// The memory of all elements of `tensors`.
std::int64_t TensorBytes(const std::vector<NamedTensor>& tensors);

// The number of predictions per sample: 1 for images, the number of tokens for text.
std::int64_t PredictionsPerSample(const Batch& batch);

// Whose samples a rank takes: part `part` of the `parts` that each batch is cut into.
struct DataPlace {
  int part = 0;
  int parts = 1;
};

// What a step came to on one rank. Each sample counts on one rank alone, so the sums over all ranks
// are those of the batch. Tensors hold one number each, on the rank's device: a GPU is still at
// work when a step returns, and whoever reads them waits for it.
struct StepResult {
  at::Tensor loss;               // the sum over this rank's own samples, before the update; float64
  std::int64_t predictions = 0;  // of the whole batch: what the sum of the losses is divided by
  at::Tensor gradient_norm;      // before it was clipped; undefined without --clip
  double loss_scale = 1;         // see LossScaler
  // The gradient was not finite, and no parameter has changed: with --on-nonfinite skip, or as the
  // scale of the losses was too large.
  bool skipped = false;
  // With --on-nonfinite stop, when the loss is not finite: the first parameter that was not finite
  // before the update; empty if all were, and on a GPU, where asking in each step would cost more
  // than the answer is worth.
  std::string not_finite;
};

// Of a pipeline's steps but the first, in which ranks get to know each other: how long this rank
// has taken and waited, and the share that it should have waited.
struct PipelineWait {
  double step_ms = 0;
  double waited_ms = 0;
  std::optional<double> theory;
};

// What a strategy has counted in the steps of this run.
struct StrategyReport {
  std::int64_t parameter_bytes = 0;  // of the whole model
  StateMemory memory;                // in the last step
  Traffic traffic;
  // The same by dimension of a mesh, those of one rank left out: {"tensor", ...}.
  std::vector<std::pair<std::string, Traffic>> traffic_by_dimension;
  std::optional<DdpTimings> timings;          // with DistributedDataParallel
  std::optional<PipelineWait> pipeline_wait;  // with a pipeline, then on all ranks
};

// Holds a model with its optimizer, and trains it: computes gradients, clips them, updates the
// parameters, and keeps the ranks in sync. Made by MakeStrategy(); then Load() or not, Begin(), and
// steps. Every rank must make the same calls, from one thread each. Methods throw what c10d throws
// when a peer is lost. Destroy it before the group.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Restores what Save() has returned, in this run or in another with any number of ranks. An
  // average that begins with this run begins with the parameters. kInvalidArgument and one sentence
  // when it does not fit; the state may then be partly restored.
  virtual absl::Status Load(const Value& saved) = 0;
  // Gives all ranks what rank 0 has, and makes ready for the first step. Call it once. Throws
  // std::runtime_error when the ranks' models differ.
  virtual void Begin() = 0;

  virtual DataPlace place() const = 0;

  // Call it before the first step of an epoch, counted from 0, or of the rest of one.
  virtual void BeginEpoch(std::int64_t /*epoch*/) {}
  // Takes one step with learning rate `lr` on this rank's part of a batch. `step` is the number of
  // steps before, on which random numbers depend.
  virtual StepResult Step(const LoadedBatch& batch, std::int64_t step, double lr) = 0;
  // This rank's sums over its part of a batch of test samples. Ranks that share a model call it
  // alike, and each sample counts on one of them.
  virtual BatchSums Evaluate(const LoadedBatch& batch) = 0;
  // Evaluate() of what the model converts to at this moment, which is a network of 8-bit numbers
  // with --qat; null when there is no such. Valid as long as the strategy.
  virtual std::function<BatchSums(const LoadedBatch& batch)> Converted() { return nullptr; }

  // Makes the model the same on every rank, as rank 0 would save it. Call this when the training is
  // done, and before the model is evaluated; training may continue afterwards.
  virtual void Settle() = 0;
  // For as long as the result lives, the model has the averages of --ema for parameters.
  virtual EmaInPlace Averaged() = 0;

  // The parameters and buffers that this rank holds: before Begin() those of the whole model.
  virtual std::vector<NamedTensor> StateDict() const = 0;
  // The state dict of the whole model, with the averages of --ema for parameters. Every rank calls
  // it, after Settle(); what rank 0 has is to be written. Shares tensors as Save() does.
  virtual std::vector<NamedTensor> Whole() = 0;

  // What a checkpoint holds of the model:
  //   model           the state dict
  //   ema             the averages of the parameters, with --ema
  //   optimizer       optimizer.state_dict()
  //   scaler          torch.cuda.amp.GradScaler.state_dict(), if losses are scaled
  //   gradient_order  names: DistributedDataParallel::GradientOrder(), which a resumed run needs to
  //                   round as this one
  // `lr` is the learning rate of the next step. With `everywhere` it is the same on every rank, and
  // otherwise what rank 0 has is to be saved. The value shares tensors with the model and the
  // optimizer, so write it before the next step. Every rank calls it, between steps.
  virtual absl::StatusOr<Dict> Save(double lr, bool everywhere) = 0;

  // What the user is told before the first step, a line each; empty without a mesh.
  virtual std::vector<std::string> StartLines() const { return {}; }
  // What rank 0 tells the user of --profile at the end, a line each. Only that rank calls it.
  virtual std::vector<std::string> ProfileLines() { return {}; }
  virtual StrategyReport Report() const = 0;
};

// Makes the strategy that options.parallel says, with an optimizer for `model`, which is on the
// world's device. `world` and `phases` must outlive it. Every rank calls it. kInvalidArgument and
// one sentence when the options do not suit each other, the model, the ranks or the device;
// kUnavailable when ranks do not come. Throws what c10d throws.
absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const Options& options,
                                                       std::unique_ptr<Model> model, World& world,
                                                       PhaseTracker& phases);

// For strategies only: loads what Save() has written of the model, into `tensors`, and of its
// optimizer. Errors as Strategy::Load().
absl::Status LoadModel(const Value& saved, const std::vector<NamedTensor>& tensors,
                       Optimizer& optimizer);

// The strategy of ranks that share a model.

// Trains over a mesh: a pipeline of parts of the model, layers split over tensor ranks, and data
// ranks that share out what is kept of each parameter (--zero, 1 where nothing is said). It is one
// strategy for whatever combination of the three. For MakeStrategy() only, which says the rest.
absl::StatusOr<std::unique_ptr<Strategy>> MakeMeshStrategy(const Options& options,
                                                           std::unique_ptr<Model> model,
                                                           World& world, PhaseTracker& phases);

// A rank's share of a batch, in the parts that pass through the model one after another.

struct MicroBatch {
  Batch batch;             // shares memory with the whole
  std::int64_t own = 0;    // how many of its samples count: the first ones
  std::int64_t index = 0;  // in its step
  bool last = false;       // the last of its step
};

// Splits `batch` into `parts` of about the same size, or one for each sample if there are fewer.
std::vector<MicroBatch> SplitUp(const LoadedBatch& batch, std::int64_t parts);

// `part` without the samples that do not count. Of a part in which none does, all stay: something
// has to pass through the model for a rank to do what the others do.
MicroBatch WithoutPadding(const MicroBatch& part);

// The model that the user has chosen.

// Makes options.model for options.shape, on `device` and of type options.dtype. Errors as
// MakeModel; kInvalidArgument, too, when the device does not compute in the type asked for.
absl::StatusOr<std::unique_ptr<Model>> MakeChosenModel(const Options& options,
                                                       const at::Device& device);

// How much memory training takes besides activations, by formula.

// What a rank keeps of parameters of K bytes when a backward pass has ended, with an optimizer that
// keeps `kept` numbers for each (AdamW 2, SGD with momentum 1) and d ranks that share. Rajbhandari
// et al., "ZeRO", SC 2020, section 5, of the same type throughout:
//
//   stage 0  K (2 + kept)              parameters, gradients, optimizer
//   stage 1  K (2 + kept / d)
//   stage 2  K (1 + (1 + kept) / d)
//   stage 3  K (2 + kept) / d
//
// Stage 3 needs the whole of a unit or two besides while it computes with them.
inline std::int64_t StateBytes(int stage, int ranks, std::int64_t parameter_bytes, int kept) {
  const int whole = stage == 0 ? 2 + kept : stage == 1 ? 2 : stage == 2 ? 1 : 0;
  return parameter_bytes * whole + parameter_bytes * (2 + kept - whole) / ranks;
}

}  // namespace muster::trainer
