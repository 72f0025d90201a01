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

#include "trainer/app/training/agreement.h"
#include "trainer/app/training/evaluation.h"
#include "trainer/app/training/loop.h"
#include "trainer/app/training/reports.h"
#include "trainer/app/training/saving.h"
#include "trainer/compat/gpu_facts.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"
#include "trainer/runtime/failure.h"
#include "trainer/runtime/flop_counter.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostStateDigits = 48;  // of two numbers

// What the training came to.
struct Outcome {
  bool stopped = false;
  std::optional<TestResult> measured;  // the last one
};

// The signal that the ranks stop for: some may not have got one, and some another one.
int SharedStopSignal(Loop& loop) {
  std::vector<double> mine;
  for (const int signal : kStopSignals) mine.push_back(StopSignal() == signal ? 1.0 : 0.0);
  const std::vector<double> heard = loop.job.group().Sum(mine);
  const auto first =
      std::find_if(heard.begin(), heard.end(), [](double ranks) { return ranks > 0; });
  return kStopSignals[first - heard.begin()];
}

// All remaining epochs.
absl::StatusOr<Outcome> TrainAll(Loop& loop) {
  const Job& job = loop.job;
  Outcome outcome;
  bool measured = false;
  // For owners that lack the checkpoint that the others resumed from.
  const absl::Status kept = SaveCheckpoint(loop);
  if (!kept.ok()) return kept;
  while (loop.state.epoch < job.options.epochs && !loop.limit_reached() && !loop.stalled()) {
    const absl::StatusOr<EpochEnd> end = TrainEpoch(loop);
    if (!end.ok()) return end.status();
    outcome.stopped = *end == EpochEnd::kStopped;
    const absl::StatusOr<bool> fit = FitToKeep(loop);
    if (!fit.ok()) return fit.status();
    if (!outcome.stopped && job.options.evaluate) {
      // A test takes long, and shards without an index are not a checkpoint.
      const absl::Status indexed =
          loop.saver.in_shards() ? loop.saver.Finish(loop.state.step) : absl::OkStatus();
      if (!indexed.ok()) return indexed;
      const auto found = RunTest(loop);
      if (!found.ok()) return found.status();
      outcome.stopped = !found->has_value();
      if (!outcome.stopped) {
        outcome.measured = *found;
        loop.state.best.Add(loop.state.step, outcome.measured->evaluation.loss);
      }
      measured = true;
    }
    // An epoch whose test was interrupted is not over: the resumed run measures it again.
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
  // A run with nothing left to train still reports its model's quality.
  if (job.options.evaluate && !measured) {
    const auto found = RunTest(loop);
    if (!found.ok()) return found.status();
    outcome.stopped = !found->has_value();
    if (!outcome.stopped) outcome.measured = *found;
  }
  return outcome;
}

// Writes the parameters for other programs. On rank 0.
absl::Status WriteModel(const Job& job, const std::vector<NamedTensor>& tensors) {
  absl::Status status;
  if (!job.options.checkpoint.final_path.empty()) {
    status = WriteTorchFile(StateDictValue(tensors), job.options.checkpoint.final_path);
  }
  if (status.ok() && !job.options.checkpoint.export_path.empty()) {
    status = WriteSafetensors({.tensors = tensors, .metadata = {{"format", "pt"}}},
                              job.options.checkpoint.export_path)
                 .status();
  }
  return status;
}

// Whether rank 0 does; only rank 0 knows its paths.
bool WritesModel(const Job& job) {
  const CheckpointOptions& options = job.options.checkpoint;
  const bool writes = !options.final_path.empty() || !options.export_path.empty();
  return job.group().Sum({job.leads() && writes ? 1.0 : 0.0})[0] > 0;
}

void SayProfile(Loop& loop, const std::optional<DdpTimings>& timings) {
  const Job& job = loop.job;
  loop.trace.phases().Enter(Phase::kOther);
  const std::int64_t steps = std::max<std::int64_t>(1, loop.state.step - loop.resumed_step);
  job.progress.Say(FormatPhases(loop.trace.phases().clock(), steps));
  for (const std::string& line : loop.strategy.ProfileLines()) job.progress.Say(line);
  if (!timings) return;
  job.progress.Say(absl::StrFormat(
      "DDP, ms of a step: forward %.3f, backward %.3f, communication %.3f (%.3f of it within "
      "backward), %d buckets",
      timings->forward_ms, timings->backward_ms, timings->communication_ms, timings->overlap_ms,
      timings->bucket_bytes.size()));
}

Summary Summarize(const Loop& loop, const Outcome& outcome, const StrategyReport& report) {
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
  const Traffic& traffic = report.traffic;
  summary.formula_bytes_per_step = traffic.PerStep(traffic.formula_bytes);
  if (traffic.counted_bytes) {
    summary.counted_bytes_per_step = traffic.PerStep(*traffic.counted_bytes);
  }
  for (const auto& [dimension, sent] : report.traffic_by_dimension) {
    summary.bytes_by_dimension.emplace_back(
        dimension, sent.PerStep(sent.counted_bytes.value_or(sent.formula_bytes)));
  }
  summary.checkpoint = job.options.checkpoint.final_path;
  if (outcome.stopped) {
    summary.checkpoint = loop.saver.PathOf(loop.state.step);
  }
  return summary;
}

// Replaces rank 0's traffic by the mean of all ranks: the ends of a pipeline send less than the
// middle, and a master that drives one sends more.
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

// How much arithmetic a step has, and how fast the ranks do it.
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
void AddFromAllRanks(const Loop& loop, const StrategyReport& report, Summary& summary) {
  Group& group = loop.job.group();
  AverageTraffic(group, summary);
  MeasureArithmetic(loop, summary);
  const StateMemory& mine = report.memory;
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
  const auto& wait = report.pipeline_wait;
  if (!wait) return;
  const std::vector<double> sums = group.Sum({wait->waited_ms, wait->step_ms});
  if (sums[1] > 0) summary.bubble = sums[0] / sums[1];
  summary.bubble_theory = wait->theory;
}

// The last line of the metrics: what whoever compares runs reads.
absl::Status ReportSummary(Loop& loop, const Summary& summary, std::int64_t parameter_bytes) {
  Scalars scalars = {.step = loop.state.step, .unix_seconds = UnixSeconds(), .values = {}};
  scalars.values = {{"summary/train_loss", summary.train_loss},
                    {"summary/samples_per_second", summary.samples_per_second},
                    {"summary/formula_bytes_per_step", summary.formula_bytes_per_step},
                    {"summary/model_bytes", static_cast<double>(parameter_bytes)}};
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
  const StrategyReport report = loop.strategy.Report();
  Summary summary = Summarize(loop, *outcome, report);
  if (outcome->stopped) summary.stop_signal = SharedStopSignal(loop);
  if (!outcome->stopped) AddFromAllRanks(loop, report, summary);
  if (!job.options.report.trace.empty()) status = loop.trace.Write(job);
  if (status.ok() && job.leads()) {
    if (job.options.report.profile) SayProfile(loop, report.timings);
    // A run that was stopped is not over.
    status = outcome->stopped ? loop.reporter->Flush()
                              : ReportSummary(loop, summary, report.parameter_bytes);
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
  // No rank reports success before the files are complete, and rank 0, which may serve the store,
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
    // Gloo's text for a closed connection; it contains an address that means nothing to users.
    const bool lost = absl::StrContains(error.what(), "by peer");
    const std::string where = loop.job.world.WhereRanksAre();
    summary = FailureOf(absl::StrCat(attempt(), lost ? ": another rank is gone" : "",
                                     where.empty() ? "" : "; ", where),
                        error);
  } catch (...) {
    summary = FailureNow(attempt());
  }
  // The next run resumes from what is being written during a failure.
  loop.saver.Wait();
  return summary;
}

}  // namespace muster::trainer
