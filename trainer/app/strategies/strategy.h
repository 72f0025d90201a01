// How ranks or threads share the work of a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/group.h"
#include "trainer/comm/traffic.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/models/model.h"
#include "trainer/parallel/ddp.h"
#include "trainer/telemetry/phase_tracker.h"

namespace muster::trainer {

// Computes gradients and keeps the ranks in sync. Every rank must make the same calls, from one
// thread each. Methods throw what c10d throws when a peer is lost. Destroy it before the group.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Runs forward and backward on `batch`, and leaves the gradients for the optimizer in the model's
  // parameters. The caller must have reset the gradients. `step` is the number of steps before, on
  // which random numbers depend. Returns the sum of the losses of this rank's own samples.
  virtual double ForwardBackward(const LoadedBatch& batch, std::int64_t step) = 0;

  // Call this after each step of the optimizer.
  virtual void AfterStep() {}
  // Makes the model the same on every rank, as rank 0 would save it. Call this when the training is
  // done, and before the model is evaluated; training may continue afterwards.
  virtual void Finish() {}

  // The order in which gradients came, for the checkpoint (DistributedDataParallel::GradientOrder).
  // Every rank calls it, between steps.
  virtual std::vector<std::string> GradientOrder() { return {}; }

  virtual Traffic traffic() const { return {}; }
  virtual std::optional<DdpTimings> timings() const { return std::nullopt; }
};

// What a strategy works with. All parts must outlive it.
struct StrategyParts {
  const Options& options;
  Model& model;  // on the group's device; receives rank 0's parameters
  Group& group;
  PhaseTracker& phases;
  const std::vector<std::string>& gradient_order;  // of the run that this one resumes, or empty
};

// Creates the strategy for options.parallel.kind. Throws what the strategy's parts throw.
std::unique_ptr<Strategy> MakeStrategy(const StrategyParts& parts);

// For MakeStrategy() only.
std::unique_ptr<Strategy> MakeDdpStrategy(const StrategyParts& parts);
std::unique_ptr<Strategy> MakeAveragingStrategy(const StrategyParts& parts);
std::unique_ptr<Strategy> MakeThreadsStrategy(const StrategyParts& parts);

// The number of predictions per sample: 1 for images, the number of tokens for text.
std::int64_t PredictionsPerSample(const Batch& batch);

// `batch` on `device`, as the model needs it: real numbers converted to `dtype`, whole ones
// unchanged.
Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype);

}  // namespace muster::trainer
