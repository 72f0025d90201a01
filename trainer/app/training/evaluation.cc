#include "trainer/app/training/evaluation.h"

#include <vector>

#include "trainer/data/loading/batch_loader.h"
#include "trainer/data/loading/global_order.h"

namespace muster::trainer {
namespace {

// Of each rank at a time. What a text's scores take is many times what an image's do.
constexpr std::int64_t kSamples = 500;
constexpr std::int64_t kWindows = 32;

}  // namespace

absl::StatusOr<std::optional<Evaluation>> Evaluate(
    const std::shared_ptr<const Dataset>& data, const Options& options, const DataPlace& place,
    Group& group, const std::function<BatchSums(const LoadedBatch&)>& measure,
    const std::function<bool()>& on_batch) {
  const bool text = data->shape().kind == DataShape::Kind::kText;
  const std::int64_t batch = (text ? kWindows : kSamples) * place.parts;
  const GlobalOrder order(data->size(), options.seed, /*epoch=*/0, /*shuffle=*/false);
  BatchLoader loader(data, order.From(0, batch, place.part, place.parts),
                     {.epoch = 0, .train = false, .threads = options.loader_threads});

  const std::vector<Metric>& metrics = options.model.objective.metrics;
  std::vector<double> totals(2 + metrics.size(), 0);  // predictions, loss, metrics
  for (;;) {
    absl::StatusOr<std::optional<LoadedBatch>> next = loader.Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    const BatchSums own = measure(**next);
    std::vector<double> mine = {own.predictions, own.loss};
    mine.insert(mine.end(), own.metrics.begin(), own.metrics.end());
    // Whether to stop is asked here, too: the samples of a large test take longer than a launcher
    // waits.
    mine.push_back(on_batch() ? 1.0 : 0.0);
    const std::vector<double> sums = group.Sum(mine);
    if (sums.back() > 0) return std::nullopt;
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += sums[i];
  }
  Evaluation evaluation = {.loss = totals[1] / totals[0]};
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    evaluation.metrics.push_back({metrics[i].name, totals[2 + i] / totals[0], metrics[i].is_share});
  }
  return evaluation;
}

}  // namespace muster::trainer
