#include "trainer/app/training/evaluation.h"

#include <cstddef>
#include <vector>

#include "trainer/app/training/cadence.h"
#include "trainer/app/training/read_numbers.h"
#include "trainer/app/training/stopwatch.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/data/loading/global_order.h"

namespace muster::trainer {
namespace {

// Of each rank at a time. What a text's scores take is many times what an image's do.
constexpr std::int64_t kSamples = 500;
constexpr std::int64_t kWindows = 32;

// Predictions, loss and metrics of each batch, one behind the other. Waits for a GPU, once.
std::vector<double> Flat(const std::vector<BatchSums>& batches) {
  std::vector<at::Tensor> tensors;
  for (const BatchSums& batch : batches) {
    tensors.push_back(batch.loss);
    tensors.insert(tensors.end(), batch.metrics.begin(), batch.metrics.end());
  }
  const std::vector<double> read = ReadNumbers(tensors);
  std::vector<double> flat;
  auto from = read.begin();
  for (const BatchSums& batch : batches) {
    flat.push_back(batch.predictions);
    const auto to = from + 1 + static_cast<std::ptrdiff_t>(batch.metrics.size());
    flat.insert(flat.end(), from, to);
    from = to;
  }
  return flat;
}

}  // namespace

absl::StatusOr<std::optional<Evaluation>> Evaluate(
    const std::shared_ptr<const Dataset>& data, const Options& options, const DataPlace& place,
    Group& group, const std::function<BatchSums(const LoadedBatch&)>& measure,
    const std::function<bool()>& on_batch) {
  const bool text = data->shape().kind == DataShape::Kind::kText;
  const std::int64_t batch = (text ? kWindows : kSamples) * place.parts;
  const GlobalOrder order(data->size(), options.seed, /*epoch=*/0, /*shuffle=*/false);
  BatchLoader loader(
      data, order.From(0, batch, place.part, place.parts),
      {.epoch = 0, .train = false, .threads = options.loader_threads, .device = group.device()});

  const std::vector<Metric>& metrics = options.model.objective.metrics;
  const std::size_t width = 2 + metrics.size();  // predictions, loss, metrics
  std::vector<double> totals(width, 0);
  std::vector<BatchSums> since_agreed;
  bool told_to_stop = false;
  Cadence cadence;
  Stopwatch since_agreement;
  // Whether all go on. Those who have no more batches than others ask as often: all have as many.
  const auto agree = [&] {
    std::vector<double> mine = Flat(since_agreed);
    mine.push_back(told_to_stop ? 1.0 : 0.0);
    mine.push_back(since_agreement.Seconds() / static_cast<double>(since_agreed.size()));
    const std::vector<double> sums = group.Sum(mine);
    since_agreement.Restart();
    cadence.OnAgreed(sums.back() / group.size());
    // Batch by batch, so that the sums do not depend on when the ranks agree.
    for (std::size_t i = 0; i < since_agreed.size() * width; ++i) totals[i % width] += sums[i];
    since_agreed.clear();
    return sums[sums.size() - 2] == 0;
  };
  for (;;) {
    absl::StatusOr<std::optional<LoadedBatch>> next = loader.Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    since_agreed.push_back(measure(**next));
    told_to_stop |= on_batch();
    const bool due = static_cast<std::int64_t>(since_agreed.size()) >= cadence.interval();
    if (due && !agree()) return std::nullopt;
  }
  if (!since_agreed.empty() && !agree()) return std::nullopt;
  Evaluation evaluation = {.loss = totals[1] / totals[0]};
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    evaluation.metrics.push_back({metrics[i].name, totals[2 + i] / totals[0], metrics[i].is_share});
  }
  return evaluation;
}

}  // namespace muster::trainer
