// Measures a model on the test samples.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/comm/group.h"
#include "trainer/data/batch_loader.h"
#include "trainer/data/dataset.h"
#include "trainer/models/objective.h"

namespace muster::trainer {

struct Loop;

struct Evaluation {
  double loss = 0;                   // mean over predictions; nats, if it is the cross entropy
  std::vector<MetricValue> metrics;  // the model's objective's, in its order
};

// The model's results on all samples of `data`; each rank takes its part: `place`. `measure`
// returns this rank's sums for a batch. Calls `on_batch` after each batch; it returns whether this
// rank was told to stop. If any rank was, all return nullopt. Every rank must call it. kUnavailable
// if data cannot be read. Throws what c10d throws.
absl::StatusOr<std::optional<Evaluation>> Evaluate(
    const std::shared_ptr<const Dataset>& data, const Options& options, const DataPlace& place,
    Group& group, const std::function<BatchSums(const LoadedBatch&)>& measure,
    const std::function<bool()>& on_batch);

// The test after an epoch.

struct TestResult {
  Evaluation evaluation;
  std::optional<Evaluation> converted;  // of what the model converts to, if it does
};

// Tests the model as it would be saved, adds the result to the logs, and says it if there are
// several epochs. nullopt when a rank was told to stop meanwhile. Every rank must call it. Errors
// as Evaluate().
absl::StatusOr<std::optional<TestResult>> RunTest(Loop& loop);

// Numbers that a device has computed, where the processor can look at them.

// The values of `numbers`, each a tensor of one number, of any type and all on one device.
// Synchronizes with a GPU once for all of them.
std::vector<double> ReadNumbers(const std::vector<at::Tensor>& numbers);

}  // namespace muster::trainer
