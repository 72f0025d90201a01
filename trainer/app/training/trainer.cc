#include "trainer/app/training/trainer.h"

#include <chrono>
#include <csignal>
#include <exception>
#include <future>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "trainer/app/reports/peak_memory.h"
#include "trainer/app/training/broadcast.h"
#include "trainer/app/training/epoch.h"
#include "trainer/app/training/evaluation.h"
#include "trainer/app/training/finiteness.h"
#include "trainer/app/training/saving.h"
#include "trainer/compat/gpu_memory.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"
#include "trainer/worker/failure.h"
#include "trainer/worker/stop_signal.h"

namespace muster::trainer {
namespace {

// What the training came to.
struct Outcome {
  bool stopped = false;
  std::optional<Evaluation> evaluation;  // the last one
};

// Measures and tells. nullopt when a rank was told to stop meanwhile.
absl::StatusOr<std::optional<Evaluation>> Measure(Session& s) {
  s.strategy->Finish();
  const EmaInPlace averaged(s.ema.get());
  const auto on_batch = [&s] {
    s.beats.Send(s.state.step);  // no step, but progress
    return StopSignal() != 0;
  };
  const auto measured = Evaluate(s.data.test, s.options, *s.model, s.group, on_batch);
  if (!measured.ok() || !measured->has_value() || !s.leads()) return measured;
  const Evaluation& evaluation = **measured;
  Scalars scalars = {.step = s.state.step,
                     .unix_seconds = UnixSeconds(),
                     .values = {{"test/loss", evaluation.loss}}};
  std::string line = absl::StrFormat("epoch %d/%d: ", s.state.epoch + 1, s.options.epochs);
  for (const MetricValue& metric : evaluation.metrics) {
    scalars.values.emplace_back(absl::StrCat("test/", metric.name), *metric.value);
    absl::StrAppend(&line, "test ", metric.name, " ", ValueText(metric), ", ");
  }
  s.reporter->Report(scalars);
  if (s.options.epochs > 1) {
    s.progress.Say(absl::StrFormat("%stest loss %.4f", line, evaluation.loss));
  }
  return measured;
}

// The signal that the ranks stop for: some may not have got one, and some another one.
int SharedStopSignal(Session& s) {
  const int mine = StopSignal();
  const std::vector<double> heard =
      s.group.Sum({mine == SIGTERM ? 1.0 : 0.0, mine == SIGINT ? 1.0 : 0.0});
  return heard[0] > 0 ? SIGTERM : SIGINT;
}

// All epochs that are left.
absl::StatusOr<Outcome> TrainAll(Session& s) {
  Outcome outcome;
  bool measured = false;
  // Owners that lack what the others have resumed from.
  const absl::Status kept = SaveCheckpoint(s);
  if (!kept.ok()) return kept;
  while (s.state.epoch < s.options.epochs && !s.limit_reached() && !s.stalled()) {
    const absl::StatusOr<EpochEnd> end = TrainEpoch(s);
    if (!end.ok()) return end.status();
    outcome.stopped = *end == EpochEnd::kStopped;
    const absl::StatusOr<bool> fit = FitToKeep(s);
    if (!fit.ok()) return fit.status();
    if (!outcome.stopped && s.options.evaluate) {
      const auto evaluation = Measure(s);
      if (!evaluation.ok()) return evaluation.status();
      outcome.stopped = !evaluation->has_value();
      if (!outcome.stopped) {
        outcome.evaluation = *evaluation;
        s.state.best.Add(s.state.step, outcome.evaluation->loss);
      }
      measured = true;
    }
    // An epoch whose test was broken off is not over: the run that goes on measures it again.
    if (*end == EpochEnd::kWhole && !outcome.stopped) {
      ++s.state.epoch;
      s.state.position = 0;
    }
    const absl::Status saved = *fit ? SaveCheckpoint(s) : absl::OkStatus();
    if (!saved.ok()) return saved;
    if (outcome.stopped) return outcome;
  }
  if (s.leads() && s.stalled() && s.state.epoch < s.options.epochs) {
    s.progress.Say(absl::StrFormat(
        "stopped early after epoch %d: no test in a row of %d was better than %.4f, after step %d",
        s.state.epoch, s.state.best.tests_since, s.state.best.loss, s.state.best.step));
  }
  // A run that found nothing left to train still says how good its model is.
  if (s.options.evaluate && !measured) {
    const auto evaluation = Measure(s);
    if (!evaluation.ok()) return evaluation.status();
    outcome.stopped = !evaluation->has_value();
    if (!outcome.stopped) outcome.evaluation = *evaluation;
  }
  return outcome;
}

// The parameters, where other programs find them. On rank 0.
absl::Status WriteModel(const Session& s) {
  const EmaInPlace averaged(s.ema.get());
  const std::vector<NamedTensor> tensors = s.model->StateDict();
  absl::Status status;
  if (!s.options.checkpoint.final_path.empty()) {
    status = WriteTorchFile(StateDictValue(tensors), s.options.checkpoint.final_path);
  }
  if (status.ok() && !s.options.checkpoint.export_path.empty()) {
    status = WriteSafetensors({.tensors = tensors, .metadata = {{"format", "pt"}}},
                              s.options.checkpoint.export_path);
  }
  return status;
}

// Each rank's part of the trace, put together by rank 0 as far as it sees them.
absl::Status WriteTrace(Session& s) {
  s.recorder.reset();
  s.phases.RecordTo(nullptr);
  const std::string& path = s.options.report.trace;
  const absl::Status written = s.trace.Write(TracePart(path, s.env.rank), s.env.rank);
  if (!written.ok()) return written;
  s.group.Barrier();
  if (!s.leads()) return absl::OkStatus();
  const absl::StatusOr<int> found = MergeTraceParts(path, s.env.world_size);
  if (!found.ok()) return found.status();
  if (*found < s.env.world_size) {
    s.progress.Say(absl::StrCat("the trace has ", *found, " of ", s.env.world_size,
                                " ranks: those of other hosts are in ", path, ".rankN there"));
  }
  if (s.trace.dropped() > 0) {
    s.progress.Say(absl::StrCat("the trace is full: ", s.trace.dropped(), " events are not in it"));
  }
  return absl::OkStatus();
}

void SayProfile(Session& s) {
  s.phases.Enter(Phase::kOther);
  const std::int64_t steps = std::max<std::int64_t>(1, s.state.step - s.resumed_step);
  s.progress.Say(FormatPhases(s.phases.clock(), steps));
  const std::optional<DdpTimings> timings = s.strategy->timings();
  if (!timings) return;
  s.progress.Say(absl::StrFormat(
      "DDP, ms of a step: forward %.3f, backward %.3f, communication %.3f (%.3f of it within "
      "backward), %d buckets",
      timings->forward_ms, timings->backward_ms, timings->communication_ms, timings->overlap_ms,
      timings->bucket_bytes.size()));
}

Summary Summarize(const Session& s, const Outcome& outcome) {
  Summary summary;
  summary.world_size = s.env.world_size;
  summary.comm = CommName(s.world.comm());
  summary.restart_count = s.env.restart_count;
  summary.resumed_step = s.resumed_step;
  summary.epochs = static_cast<int>(s.state.epoch) + (s.state.position > 0 ? 1 : 0);
  summary.steps = s.state.step;
  summary.skipped_steps = s.skipped_steps;
  summary.batch_size = s.state.batch_size;
  summary.unit = s.unit();
  summary.train_loss = s.state.epoch_loss.mean();
  for (const Metric& metric : s.options.model.objective.metrics) {
    summary.test_metrics.push_back({metric.name, std::nullopt, metric.is_share});
  }
  if (outcome.evaluation) {
    summary.test_loss = outcome.evaluation->loss;
    summary.test_metrics = outcome.evaluation->metrics;
    if (s.state.best.step > 0 && s.state.best.step < s.state.step) {
      summary.best_test_loss = s.state.best.loss;
      summary.best_step = s.state.best.step;
    }
  }
  if (s.train_seconds > 0) {
    summary.samples_per_second = static_cast<double>(s.trained_samples) / s.train_seconds;
  }
  summary.tokens_per_second =
      summary.samples_per_second * static_cast<double>(s.data.train->shape().context);
  summary.peak_memory_bytes = PeakResidentBytes();
  summary.peak_gpu_bytes = compat::PeakReservedBytes(s.world.device());
  const Traffic traffic = s.strategy->traffic();
  summary.formula_bytes_per_step = traffic.PerStep(traffic.formula_bytes);
  if (traffic.counted_bytes) {
    summary.counted_bytes_per_step = traffic.PerStep(*traffic.counted_bytes);
  }
  summary.checkpoint = s.options.checkpoint.final_path;
  if (outcome.stopped) {
    summary.checkpoint = s.writer ? s.writer->directory().PathOf(s.state.step) : "";
  }
  return summary;
}

// The last line of the metrics: what whoever compares runs reads.
absl::Status ReportSummary(Session& s, const Summary& summary) {
  std::int64_t bytes = 0;
  for (const NamedTensor& parameter : s.parameters) bytes += parameter.tensor.nbytes();
  Scalars scalars = {.step = s.state.step, .unix_seconds = UnixSeconds(), .values = {}};
  scalars.values = {{"summary/train_loss", summary.train_loss},
                    {"summary/samples_per_second", summary.samples_per_second},
                    {"summary/formula_bytes_per_step", summary.formula_bytes_per_step},
                    {"summary/model_bytes", static_cast<double>(bytes)}};
  if (summary.counted_bytes_per_step) {
    scalars.values.emplace_back("summary/counted_bytes_per_step", *summary.counted_bytes_per_step);
  }
  const auto add_known = [&scalars](const char* name, double value) {
    if (value > 0) scalars.values.emplace_back(name, value);
  };
  add_known("summary/tokens_per_second", summary.tokens_per_second);
  add_known("summary/peak_memory_bytes", static_cast<double>(summary.peak_memory_bytes));
  add_known("summary/peak_gpu_bytes", static_cast<double>(summary.peak_gpu_bytes));
  s.reporter->Report(scalars);
  return s.reporter->Flush();
}

absl::StatusOr<Summary> TrainAndWrite(Session& s) {
  const absl::StatusOr<Outcome> outcome = TrainAll(s);
  if (!outcome.ok()) return outcome.status();
  absl::Status status = FinishSaving(s);
  if (!status.ok()) return status;
  if (!outcome->stopped) s.strategy->Finish();
  Summary summary = Summarize(s, *outcome);
  if (outcome->stopped) summary.stop_signal = SharedStopSignal(s);
  if (!s.options.report.trace.empty()) status = WriteTrace(s);
  if (status.ok() && s.leads()) {
    if (s.options.report.profile) SayProfile(s);
    status = ReportSummary(s, summary);
  }
  if (!status.ok()) return status;
  std::future<absl::Status> writing;
  if (s.leads() && !outcome->stopped) {
    writing = std::async(std::launch::async, [&s] { return WriteModel(s); });
  }
  AwaitAll(s, [&writing](std::chrono::milliseconds most) {
    return !writing.valid() || writing.wait_for(most) == std::future_status::ready;
  });
  // Nobody reports success before the files are there, and rank 0, which may serve the store,
  // leaves with the others.
  status = FirstFailure(writing.valid() ? writing.get() : absl::OkStatus(), s.group);
  if (!status.ok()) return status;
  return summary;
}

}  // namespace

absl::StatusOr<Summary> Train(Session& session) {
  const auto attempt = [&session] {
    return absl::StrCat("training stopped in epoch ", session.state.epoch + 1, " after step ",
                        session.state.step);
  };
  absl::StatusOr<Summary> summary = Summary();
  try {
    summary = TrainAndWrite(session);
  } catch (const std::exception& error) {
    // Gloo's words for a connection that ended; they name an address that means nothing to anybody.
    const bool lost = absl::StrContains(error.what(), "by peer");
    const std::string where = session.world.WhereRanksAre();
    summary = FailureOf(absl::StrCat(attempt(), lost ? ": another rank is gone" : "",
                                     where.empty() ? "" : "; ", where),
                        error);
  }
  // What is being written when something fails is what the next run resumes from.
  if (session.writer) session.writer->Wait();
  return summary;
}

}  // namespace muster::trainer
