// Measures a model on the test samples.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/comm/group.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/models/objective.h"

namespace muster::trainer {

struct Evaluation {
  double loss = 0;                   // mean over predictions; nats, if it is the cross entropy
  std::vector<MetricValue> metrics;  // those of the model's objective, in their order
};

// What a model comes to on all samples of `data`, each rank taking its part of it: `place`.
// `measure` gives this rank's sums of a batch. Calls `on_batch` after each batch; it returns
// whether this rank was told to stop. If any rank was, all return nullopt. Every rank must call it.
// kUnavailable when data cannot be read. Throws what c10d throws.
absl::StatusOr<std::optional<Evaluation>> Evaluate(
    const std::shared_ptr<const Dataset>& data, const Options& options, const DataPlace& place,
    Group& group, const std::function<BatchSums(const LoadedBatch&)>& measure,
    const std::function<bool()>& on_batch);

}  // namespace muster::trainer
