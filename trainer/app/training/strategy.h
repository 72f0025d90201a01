// How ranks, or threads, share the work of a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/process_group.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/models/model.h"
#include "trainer/parallel/ddp.h"
#include "trainer/parallel/traffic.h"
#include "trainer/telemetry/phase_tracker.h"

namespace muster::trainer {

// Computes gradients, and keeps the ranks together. Every rank makes the same calls, from one
// thread each. Methods throw what c10d throws when a peer is lost. To be destroyed before the
// group.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // Runs `batch` forward and backward, and leaves in the model's parameters the gradients that the
  // optimizer is to use. Gradients must have been reset before. Returns the sum of the losses of
  // this rank's own samples.
  virtual double ForwardBackward(const LoadedBatch& batch) = 0;

  // To be called after each step of the optimizer.
  virtual void AfterStep() {}
  // To be called when the training is done, or parameters are to be looked at.
  virtual void Finish() {}

  virtual Traffic traffic() const { return {}; }
  virtual std::optional<DdpTimings> timings() const { return std::nullopt; }
};

// What a strategy works with; all of it must outlive the strategy.
struct StrategyParts {
  const Options& options;
  Model& model;  // on the group's device; its parameters become rank 0's
  ProcessGroup& group;
  PhaseTracker& phases;
};

// The one that options.parallel.kind asks for. Throws what it is made of throws.
std::unique_ptr<Strategy> MakeStrategy(const StrategyParts& parts);

// For MakeStrategy.
std::unique_ptr<Strategy> MakeDdpStrategy(const StrategyParts& parts);
std::unique_ptr<Strategy> MakeAveragingStrategy(const StrategyParts& parts);
std::unique_ptr<Strategy> MakeThreadsStrategy(const StrategyParts& parts);

// How many predictions a sample is: 1, or the tokens of a text.
std::int64_t PredictionsPerSample(const Batch& batch);

// A batch where the model can take it: images in `dtype`, tokens as they are.
Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype);

}  // namespace muster::trainer
