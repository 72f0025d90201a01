// How ranks or threads share the work of a training.
#pragma once

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
#include "trainer/app/strategies/batch_sums.h"
#include "trainer/app/strategies/state_memory.h"
#include "trainer/comm/group.h"
#include "trainer/comm/traffic.h"
#include "trainer/comm/world.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/io/value.h"
#include "trainer/models/model.h"
#include "trainer/named_tensor.h"
#include "trainer/optim/ema.h"
#include "trainer/parallel/ddp.h"
#include "trainer/telemetry/phase_tracker.h"

namespace muster::trainer {

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
  // Of the parameters of the whole model.
  virtual std::int64_t parameter_bytes() const = 0;

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
  virtual Traffic traffic() const { return {}; }
  // The same by dimension of a mesh, those of one rank left out: {"tensor", ...}.
  virtual std::vector<std::pair<std::string, Traffic>> TrafficByDimension() const { return {}; }
  virtual std::optional<DdpTimings> timings() const { return std::nullopt; }
  // In the last step of this run.
  virtual StateMemory state_memory() const { return {}; }
  // Of a pipeline's steps but the first, in which ranks get to know each other: how long this rank
  // has taken and waited, and the share that it should have waited. nullopt without a pipeline.
  struct PipelineWait {
    double step_ms = 0;
    double waited_ms = 0;
    std::optional<double> theory;
  };
  virtual std::optional<PipelineWait> pipeline_wait() const { return std::nullopt; }
};

// Makes the strategy that options.parallel says, with an optimizer for `model`, which is on the
// world's device. `world` and `phases` must outlive it. Every rank calls it. kInvalidArgument and
// one sentence when the options do not suit each other, the model, the ranks or the device;
// kUnavailable when ranks do not come. Throws what c10d throws.
absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(const Options& options,
                                                       std::unique_ptr<Model> model, World& world,
                                                       PhaseTracker& phases);

}  // namespace muster::trainer
