// How good a model is on the test samples.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/process_group.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

namespace muster::trainer {

struct Evaluation {
  double loss = 0;      // mean over predictions, nats
  double accuracy = 0;  // share of predictions that are right, in [0, 1]
};

// Measures `model` on all samples of `data`, each rank a part of them, and leaves it set for
// evaluation. `on_batch` is called after each batch and says whether this rank was told to stop; if
// any was, all return nullopt. Every rank calls it. kUnavailable when data cannot be had; throws
// what c10d throws.
absl::StatusOr<std::optional<Evaluation>> Evaluate(const std::shared_ptr<const Dataset>& data,
                                                   const Options& options, Model& model,
                                                   ProcessGroup& group,
                                                   const std::function<bool()>& on_batch);

}  // namespace muster::trainer
