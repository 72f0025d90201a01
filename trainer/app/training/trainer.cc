#include "trainer/app/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "trainer/app/reports/peak_memory.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/epoch.h"
#include "trainer/app/training/evaluation.h"
#include "trainer/app/training/finiteness.h"
#include "trainer/app/training/saving.h"
#include "trainer/compat/gpu_facts.h"
#include "trainer/compat/gpu_memory.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"
#include "trainer/telemetry/gpu_peak.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/stop_signal.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostStateDigits = 48;  // of two numbers

// What the model is measured to be.
struct Measured {
  Evaluation evaluation;
  std::optional<Evaluation> converted;  // of what it converts to, if it does
};

// What the training came to.
struct Outcome {
  bool stopped = false;
  std::optional<Measured> measured;  // the last one
};

// "test accuracy 84.10 %, ", and the same of what the model converts to.
std::string MetricsText(const Measured& measured) {
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
void Tell(Loop& loop, const Measured& measured) {
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

// Measures and tells. nullopt when a rank was told to stop meanwhile.
absl::StatusOr<std::optional<Measured>> Measure(Loop& loop) {
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
  Measured measured;
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
  if (job.leads()) Tell(loop, measured);
  return measured;
}

// The signal that the ranks stop for: some may not have got one, and some another one.
int SharedStopSignal(Loop& loop) {
  std::vector<double> mine;
  for (const int signal : kStopSignals) mine.push_back(StopSignal() == signal ? 1.0 : 0.0);
  const std::vector<double> heard = loop.job.group().Sum(mine);
  const auto first =
      std::find_if(heard.begin(), heard.end(), [](double ranks) { return ranks > 0; });
  return kStopSignals[first - heard.begin()];
}

// All epochs that are left.
absl::StatusOr<Outcome> TrainAll(Loop& loop) {
  const Job& job = loop.job;
  Outcome outcome;
  bool measured = false;
  // Owners that lack what the others have resumed from.
  const absl::Status kept = SaveCheckpoint(loop);
  if (!kept.ok()) return kept;
  while (loop.state.epoch < job.options.epochs && !loop.limit_reached() && !loop.stalled()) {
    const absl::StatusOr<EpochEnd> end = TrainEpoch(loop);
    if (!end.ok()) return end.status();
    outcome.stopped = *end == EpochEnd::kStopped;
    const absl::StatusOr<bool> fit = FitToKeep(loop);
    if (!fit.ok()) return fit.status();
    if (!outcome.stopped && job.options.evaluate) {
      // A test takes long, and shards are no checkpoint before they have an index.
      const absl::Status indexed =
          loop.saver.in_shards() ? loop.saver.Finish(loop.state.step) : absl::OkStatus();
      if (!indexed.ok()) return indexed;
      const auto found = Measure(loop);
      if (!found.ok()) return found.status();
      outcome.stopped = !found->has_value();
      if (!outcome.stopped) {
        outcome.measured = *found;
        loop.state.best.Add(loop.state.step, outcome.measured->evaluation.loss);
      }
      measured = true;
    }
    // An epoch whose test was broken off is not over: the run that goes on measures it again.
    if (*end == EpochEnd::kWhole && !outcome.stopped) {
      ++loop.state.epoch;
      loop.state.position = 0;
    }
    const absl::Status saved = *fit ? SaveCheckpoint(loop) : absl::OkStatus();
    if (!saved.ok()) return saved;
    if (outcome.stopped) return outcome;
  }
  if (job.leads() && loop.stalled() && loop.state.epoch < job.options.epochs) {
    job.progress.Say(absl::StrFormat(
        "stopped early after epoch %d: no test in a row of %d was better than %.4f, after step %d",
        loop.state.epoch, loop.state.best.tests_since, loop.state.best.loss, loop.state.best.step));
  }
  // A run that found nothing left to train still says how good its model is.
  if (job.options.evaluate && !measured) {
    const auto found = Measure(loop);
    if (!found.ok()) return found.status();
    outcome.stopped = !found->has_value();
    if (!outcome.stopped) outcome.measured = *found;
  }
  return outcome;
}

// The parameters, where other programs find them. On rank 0.
absl::Status WriteModel(const Job& job, const std::vector<NamedTensor>& tensors) {
  absl::Status status;
  if (!job.options.checkpoint.final_path.empty()) {
    status = WriteTorchFile(StateDictValue(tensors), job.options.checkpoint.final_path);
  }
  if (status.ok() && !job.options.checkpoint.export_path.empty()) {
    status = WriteSafetensors({.tensors = tensors, .metadata = {{"format", "pt"}}},
                              job.options.checkpoint.export_path);
  }
  return status;
}

// Whether rank 0 does, whose paths the others do not know.
bool WritesModel(const Job& job) {
  const CheckpointOptions& options = job.options.checkpoint;
  const bool writes = !options.final_path.empty() || !options.export_path.empty();
  return job.group().Sum({job.leads() && writes ? 1.0 : 0.0})[0] > 0;
}

void SayProfile(Loop& loop) {
  const Job& job = loop.job;
  loop.trace.phases().Enter(Phase::kOther);
  const std::int64_t steps = std::max<std::int64_t>(1, loop.state.step - loop.resumed_step);
  job.progress.Say(FormatPhases(loop.trace.phases().clock(), steps));
  for (const std::string& line : loop.strategy.ProfileLines()) job.progress.Say(line);
  const std::optional<DdpTimings> timings = loop.strategy.timings();
  if (!timings) return;
  job.progress.Say(absl::StrFormat(
      "DDP, ms of a step: forward %.3f, backward %.3f, communication %.3f (%.3f of it within "
      "backward), %d buckets",
      timings->forward_ms, timings->backward_ms, timings->communication_ms, timings->overlap_ms,
      timings->bucket_bytes.size()));
}

Summary Summarize(const Loop& loop, const Outcome& outcome) {
  const Job& job = loop.job;
  Summary summary;
  summary.world_size = job.env.world_size;
  summary.comm = CommName(job.world.comm());
  summary.restart_count = job.env.restart_count;
  summary.resumed_step = loop.resumed_step;
  summary.epochs = static_cast<int>(loop.state.epoch) + (loop.state.position > 0 ? 1 : 0);
  summary.steps = loop.state.step;
  summary.skipped_steps = loop.totals.skipped_steps;
  summary.batch_size = loop.state.batch_size;
  summary.unit = job.unit();
  summary.train_loss = loop.state.epoch_loss.mean();
  for (const Metric& metric : job.options.model.objective.metrics) {
    summary.test_metrics.push_back({metric.name, std::nullopt, metric.is_share});
  }
  if (outcome.measured) {
    summary.test_loss = outcome.measured->evaluation.loss;
    summary.test_metrics = outcome.measured->evaluation.metrics;
    if (outcome.measured->converted) summary.int8_metrics = outcome.measured->converted->metrics;
    if (loop.state.best.step > 0 && loop.state.best.step < loop.state.step) {
      summary.best_test_loss = loop.state.best.loss;
      summary.best_step = loop.state.best.step;
    }
  }
  if (loop.totals.seconds > 0) {
    summary.samples_per_second = static_cast<double>(loop.totals.samples) / loop.totals.seconds;
  }
  summary.tokens_per_second =
      summary.samples_per_second * static_cast<double>(job.data.train->shape().context);
  summary.peak_memory_bytes = PeakResidentBytes();
  summary.peak_gpu_bytes = compat::PeakReservedBytes(job.world.device());
  const Traffic traffic = loop.strategy.traffic();
  summary.formula_bytes_per_step = traffic.PerStep(traffic.formula_bytes);
  if (traffic.counted_bytes) {
    summary.counted_bytes_per_step = traffic.PerStep(*traffic.counted_bytes);
  }
  for (const auto& [dimension, sent] : loop.strategy.TrafficByDimension()) {
    summary.bytes_by_dimension.emplace_back(
        dimension, sent.PerStep(sent.counted_bytes.value_or(sent.formula_bytes)));
  }
  summary.checkpoint = job.options.checkpoint.final_path;
  if (outcome.stopped) {
    summary.checkpoint = loop.saver.PathOf(loop.state.step);
  }
  return summary;
}

// Replaces what rank 0 has sent by the mean of all ranks: the ends of a pipeline send less than
// those in between, and a master that drives one sends more.
void AverageTraffic(Group& group, Summary& summary) {
  std::vector<double> sent = {summary.formula_bytes_per_step,
                              summary.counted_bytes_per_step.value_or(0),
                              summary.counted_bytes_per_step ? 0.0 : 1.0};
  for (const auto& [dimension, bytes] : summary.bytes_by_dimension) sent.push_back(bytes);
  std::vector<double> sums = group.Sum(sent);
  for (double& sum : sums) sum /= group.size();
  summary.formula_bytes_per_step = sums[0];
  summary.counted_bytes_per_step = sums[2] > 0 ? std::nullopt : std::optional(sums[1]);
  for (std::size_t i = 0; i < summary.bytes_by_dimension.size(); ++i) {
    summary.bytes_by_dimension[i].second = sums[3 + i];
  }
}

// How much arithmetic a step has, and how fast ranks go through it.
void MeasureArithmetic(const Loop& loop, Summary& summary) {
  const Job& job = loop.job;
  const double flops = job.group().Sum({static_cast<double>(loop.totals.counted_flops)})[0];
  if (loop.totals.counted_samples == 0) return;
  summary.flops_per_sample = flops / static_cast<double>(loop.totals.counted_samples);
  summary.flops_per_second =
      summary.flops_per_sample * summary.samples_per_second / job.env.world_size;
  const std::string gpu = compat::GpuName(job.world.device());
  const Multiplies kind = job.options.autocast_type()                    ? Multiplies::kHalf
                          : job.options.dtype == c10::ScalarType::Double ? Multiplies::kDouble
                          : job.options.tf32                             ? Multiplies::kTf32
                                                                         : Multiplies::kFloat;
  if (const std::optional<double> peak = PeakFlops(gpu, kind)) {
    summary.peak_flops = *peak;
    summary.peak_of = absl::StrCat(MultipliesName(kind), " of an ", gpu);
  }
}

// What only all ranks together know. Every rank calls it.
void AddFromAllRanks(Loop& loop, Summary& summary) {
  Group& group = loop.job.group();
  AverageTraffic(group, summary);
  MeasureArithmetic(loop, summary);
  const StateMemory mine = loop.strategy.state_memory();
  for (const std::string& text :
       group.Gather(absl::StrCat(mine.counted, " ", mine.formula), kMostStateDigits)) {
    const std::vector<std::string> words = absl::StrSplit(text, ' ');
    std::int64_t counted = 0;
    std::int64_t formula = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &counted) ||
        !absl::SimpleAtoi(words[1], &formula) || counted <= summary.state_bytes) {
      continue;
    }
    summary.state_bytes = counted;
    summary.state_formula_bytes = formula;
  }
  const auto wait = loop.strategy.pipeline_wait();
  if (!wait) return;  // on all ranks
  const std::vector<double> sums = group.Sum({wait->waited_ms, wait->step_ms});
  if (sums[1] > 0) summary.bubble = sums[0] / sums[1];
  summary.bubble_theory = wait->theory;
}

// The last line of the metrics: what whoever compares runs reads.
absl::Status ReportSummary(Loop& loop, const Summary& summary) {
  Scalars scalars = {.step = loop.state.step, .unix_seconds = UnixSeconds(), .values = {}};
  scalars.values = {{"summary/train_loss", summary.train_loss},
                    {"summary/samples_per_second", summary.samples_per_second},
                    {"summary/formula_bytes_per_step", summary.formula_bytes_per_step},
                    {"summary/model_bytes", static_cast<double>(loop.strategy.parameter_bytes())}};
  for (const auto& [dimension, bytes] : summary.bytes_by_dimension) {
    scalars.values.emplace_back(absl::StrCat("summary/", dimension, "_bytes_per_step"), bytes);
  }
  if (summary.counted_bytes_per_step) {
    scalars.values.emplace_back("summary/counted_bytes_per_step", *summary.counted_bytes_per_step);
  }
  const auto add_known = [&scalars](const char* name, double value) {
    if (value > 0) scalars.values.emplace_back(name, value);
  };
  add_known("summary/tokens_per_second", summary.tokens_per_second);
  add_known("summary/flops_per_sample", summary.flops_per_sample);
  add_known("summary/flops_per_second", summary.flops_per_second);
  if (summary.peak_flops > 0)
    add_known("summary/mfu", summary.flops_per_second / summary.peak_flops);
  add_known("summary/peak_memory_bytes", static_cast<double>(summary.peak_memory_bytes));
  add_known("summary/peak_gpu_bytes", static_cast<double>(summary.peak_gpu_bytes));
  add_known("summary/state_bytes", static_cast<double>(summary.state_bytes));
  add_known("summary/state_formula_bytes", static_cast<double>(summary.state_formula_bytes));
  add_known("summary/bubble", summary.bubble.value_or(0));
  add_known("summary/bubble_theory", summary.bubble_theory.value_or(0));
  loop.reporter->Report(scalars);
  return loop.reporter->Flush();
}

absl::StatusOr<Summary> TrainAndWrite(Loop& loop) {
  const Job& job = loop.job;
  const absl::StatusOr<Outcome> outcome = TrainAll(loop);
  if (!outcome.ok()) return outcome.status();
  absl::Status status = loop.saver.Finish(loop.state.step);
  if (!status.ok()) return status;
  if (!outcome->stopped) loop.strategy.Settle();
  Summary summary = Summarize(loop, *outcome);
  if (outcome->stopped) summary.stop_signal = SharedStopSignal(loop);
  if (!outcome->stopped) AddFromAllRanks(loop, summary);
  if (!job.options.report.trace.empty()) status = loop.trace.Write(job);
  if (status.ok() && job.leads()) {
    if (job.options.report.profile) SayProfile(loop);
    // A run that was stopped is not over.
    status = outcome->stopped ? loop.reporter->Flush() : ReportSummary(loop, summary);
  }
  if (!status.ok()) return status;
  std::vector<NamedTensor> whole;
  if (WritesModel(job) && !outcome->stopped) whole = loop.strategy.Whole();
  std::future<absl::Status> writing;
  if (job.leads() && !outcome->stopped) {
    writing = std::async(std::launch::async, [&] { return WriteModel(job, whole); });
  }
  AwaitAll(job, loop.state.step, [&writing](std::chrono::milliseconds most) {
    return !writing.valid() || writing.wait_for(most) == std::future_status::ready;
  });
  // Nobody reports success before the files are there, and rank 0, which may serve the store,
  // leaves with the others.
  status = FirstFailure(writing.valid() ? writing.get() : absl::OkStatus(), job.group());
  if (!status.ok()) return status;
  return summary;
}

}  // namespace

absl::StatusOr<Summary> Train(Loop& loop) {
  const auto attempt = [&loop] {
    return absl::StrCat("training stopped in epoch ", loop.state.epoch + 1, " after step ",
                        loop.state.step);
  };
  absl::StatusOr<Summary> summary = Summary();
  try {
    summary = TrainAndWrite(loop);
  } catch (const std::exception& error) {
    // Gloo's words for a connection that ended; they name an address that means nothing to anybody.
    const bool lost = absl::StrContains(error.what(), "by peer");
    const std::string where = loop.job.world.WhereRanksAre();
    summary = FailureOf(absl::StrCat(attempt(), lost ? ": another rank is gone" : "",
                                     where.empty() ? "" : "; ", where),
                        error);
  } catch (...) {
    summary = FailureNow(attempt());
  }
  // What is being written when something fails is what the next run resumes from.
  loop.saver.Wait();
  return summary;
}

}  // namespace muster::trainer
