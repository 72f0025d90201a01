#include "trainer/app/training/evaluation.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/stack.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/app/training/loop.h"
#include "trainer/data/batch_loader.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/worker/launcher_link.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {
namespace {

// Per rank at a time. Scores of text take many times the memory of an image's.
constexpr std::int64_t kSamples = 500;
constexpr std::int64_t kWindows = 32;

// Predictions, loss and metrics of each batch, concatenated. Synchronizes with a GPU once.
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
  // Whether all ranks continue. Every rank has the same number of batches, so all agree equally
  // often.
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

namespace {

// "test accuracy 84.10 %, ", and the same of what the model converts to.
std::string MetricsText(const TestResult& measured) {
  std::string text;
  for (const MetricValue& metric : measured.evaluation.metrics) {
    absl::StrAppend(&text, "test ", metric.name, " ", ValueText(metric), ", ");
  }
  if (!measured.converted) return text;
  for (const MetricValue& metric : measured.converted->metrics) {
    absl::StrAppend(&text, "int8 ", metric.name, " ", ValueText(metric), ", ");
  }
  return text;
}

// On rank 0.
void ReportTest(Loop& loop, const TestResult& measured) {
  const Job& job = loop.job;
  const Evaluation& evaluation = measured.evaluation;
  Scalars scalars = {.step = loop.state.step,
                     .unix_seconds = UnixSeconds(),
                     .values = {{"test/loss", evaluation.loss}}};
  for (const MetricValue& metric : evaluation.metrics) {
    scalars.values.emplace_back(absl::StrCat("test/", metric.name), *metric.value);
  }
  if (measured.converted) {
    scalars.values.emplace_back("test/int8_loss", measured.converted->loss);
    for (const MetricValue& metric : measured.converted->metrics) {
      scalars.values.emplace_back(absl::StrCat("test/int8_", metric.name), *metric.value);
    }
  }
  loop.reporter->Report(scalars);
  if (job.options.epochs > 1) {
    job.progress.Say(
        absl::StrFormat("epoch %d/%d: %stest loss %.4f",
                        std::min<std::int64_t>(loop.state.epoch + 1, job.options.epochs),
                        job.options.epochs, MetricsText(measured), evaluation.loss));
  }
}

}  // namespace

absl::StatusOr<std::optional<TestResult>> RunTest(Loop& loop) {
  const Job& job = loop.job;
  loop.strategy.Settle();
  const EmaInPlace averaged = loop.strategy.Averaged();
  const auto on_batch = [&loop] {
    loop.job.beats.Send(loop.state.step);  // no step, but progress
    return StopSignal() != 0;
  };
  const auto evaluate = [&](const std::function<BatchSums(const LoadedBatch&)>& measure) {
    return Evaluate(job.data.test, job.options, loop.strategy.place(), job.group(), measure,
                    on_batch);
  };
  TestResult measured;
  auto evaluation =
      evaluate([&loop](const LoadedBatch& batch) { return loop.strategy.Evaluate(batch); });
  if (!evaluation.ok()) return evaluation.status();
  if (!evaluation->has_value()) return std::nullopt;
  measured.evaluation = **std::move(evaluation);
  if (const auto converted = loop.strategy.Converted()) {
    auto of_converted = evaluate(converted);
    if (!of_converted.ok()) return of_converted.status();
    if (!of_converted->has_value()) return std::nullopt;
    measured.converted = *std::move(of_converted);
  }
  if (job.leads()) ReportTest(loop, measured);
  return measured;
}

std::vector<double> ReadNumbers(const std::vector<at::Tensor>& numbers) {
  if (numbers.empty()) return {};
  std::vector<at::Tensor> doubles;
  doubles.reserve(numbers.size());
  for (const at::Tensor& number : numbers) {
    doubles.push_back(number.detach().to(at::kDouble).reshape({}));
  }
  const at::Tensor read = at::stack(doubles).cpu();
  const auto* const first = read.data_ptr<double>();
  return std::vector<double>(first, first + read.numel());
}

}  // namespace muster::trainer
