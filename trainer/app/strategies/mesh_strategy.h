// The strategy of ranks that share a model.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "trainer/app/strategies/strategy.h"

namespace muster::trainer {

// Trains over a mesh: a pipeline of parts of the model, layers split over tensor ranks, and data
// ranks that share out what is kept of each parameter (--zero, 1 where nothing is said). It is one
// strategy for whatever combination of the three. For MakeStrategy() only, which says the rest.
absl::StatusOr<std::unique_ptr<Strategy>> MakeMeshStrategy(const Options& options,
                                                           std::unique_ptr<Model> model,
                                                           World& world, PhaseTracker& phases);

}  // namespace muster::trainer
