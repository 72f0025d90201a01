#include "trainer/app/training/evaluation.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <vector>

#include "trainer/app/strategies/strategy.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/data/loading/global_order.h"
#include "trainer/models/autocast.h"
#include "trainer/models/loss.h"

namespace muster::trainer {
namespace {

// Of each rank at a time. What a text's scores take is many times what an image's do.
constexpr std::int64_t kSamples = 500;
constexpr std::int64_t kWindows = 32;

}  // namespace

absl::StatusOr<std::optional<Evaluation>> Evaluate(const std::shared_ptr<const Dataset>& data,
                                                   const Options& options, Model& model,
                                                   Group& group,
                                                   const std::function<bool()>& on_batch) {
  const at::NoGradGuard no_grad;
  model.SetTraining(false);
  const bool text = data->shape().kind == DataShape::Kind::kText;
  const std::int64_t batch = (text ? kWindows : kSamples) * group.size();
  const GlobalOrder order(data->size(), options.seed, /*epoch=*/0, /*shuffle=*/false);
  BatchLoader loader(data, order.From(0, batch, group.rank(), group.size()),
                     {.epoch = 0, .train = false, .threads = options.loader_threads});

  const Objective& objective = options.model.objective;
  std::vector<double> totals(2 + objective.metrics.size(), 0);  // predictions, loss, metrics
  for (;;) {
    absl::StatusOr<std::optional<LoadedBatch>> next = loader.Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    const LoadedBatch& loaded = **next;
    const std::int64_t own = loaded.plan.own;
    const Batch moved = MovedTo(loaded.data, group.device(), options.dtype);
    const Bf16Autocast autocast(options.bf16, group.device().is_cuda());
    const at::Tensor scores = model.Forward(moved.inputs).narrow(0, 0, own);
    const at::Tensor targets = moved.targets.narrow(0, 0, own);
    // Whether to stop is asked here, too: the samples of a large test take longer than a launcher
    // waits.
    std::vector<double> mine = {static_cast<double>(CountPredictions(targets)),
                                objective.loss(scores, targets).item<double>()};
    for (const Metric& metric : objective.metrics) mine.push_back(metric.sum(scores, targets));
    mine.push_back(on_batch() ? 1.0 : 0.0);
    const std::vector<double> sums = group.Sum(mine);
    if (sums.back() > 0) return std::nullopt;
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += sums[i];
  }
  Evaluation evaluation = {.loss = totals[1] / totals[0]};
  for (std::size_t i = 0; i < objective.metrics.size(); ++i) {
    const Metric& metric = objective.metrics[i];
    evaluation.metrics.push_back({metric.name, totals[2 + i] / totals[0], metric.is_share});
  }
  return evaluation;
}

}  // namespace muster::trainer
