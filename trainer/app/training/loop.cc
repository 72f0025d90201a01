#include "trainer/app/training/loop.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "trainer/optim/gradients.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kMostEvents = 500'000;  // about 60 MB

}  // namespace

StepTrace::StepTrace() : trace_(kMostEvents) {}

void StepTrace::Record(std::int64_t steps) {
  recorder_ = std::make_unique<TraceRecorder>(trace_);
  phases_.RecordTo(&trace_);
  steps_left_ = steps;
}

void StepTrace::OnStep() {
  if (recorder_ && --steps_left_ == 0) End();
}

void StepTrace::End() {
  recorder_.reset();
  phases_.RecordTo(nullptr);
}

absl::Status StepTrace::Write(const Job& job) {
  End();
  const std::string& path = job.options.report.trace;
  const absl::Status written = trace_.Write(TracePart(path, job.env.rank), job.env.rank);
  if (!written.ok()) return written;
  job.group().Barrier();
  if (!job.leads()) return absl::OkStatus();
  const absl::StatusOr<int> found = MergeTraceParts(path, job.env.world_size);
  if (!found.ok()) return found.status();
  if (*found < job.env.world_size) {
    job.progress.Say(absl::StrCat("the trace has ", *found, " of ", job.env.world_size,
                                  " ranks: those of other hosts are in ", path, ".rankN there"));
  }
  if (trace_.dropped() > 0) {
    job.progress.Say(
        absl::StrCat("the trace is full: ", trace_.dropped(), " events are not in it"));
  }
  return absl::OkStatus();
}

namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

absl::Status SaveCheckpoint(Loop& loop) {
  const absl::Status logged = loop.job.leads() ? loop.reporter->Flush() : absl::OkStatus();
  return logged.ok() ? loop.saver.Save(loop.strategy, loop.state, loop.learning_rate()) : logged;
}

std::int64_t TotalSteps(const Options& options, const TrainState& state) {
  std::int64_t total = state.step;
  if (state.epoch < options.epochs) {
    const std::int64_t left = state.dataset_size - state.position;
    total += CeilDiv(left, state.batch_size) +
             (options.epochs - state.epoch - 1) * CeilDiv(state.dataset_size, state.batch_size);
  }
  return options.max_steps > 0 ? std::min(total, std::max(options.max_steps, state.step)) : total;
}

namespace {

// A rank's report: this mark if its loss is not finite though its parameters are. Otherwise the
// name of a parameter, which may be anything, after a prefix.
constexpr char kLossAlone[] = "?";
constexpr char kParameter = '=';
constexpr std::size_t kMostBytesOfWord = 200;

// Which of `ranks` ranks have a report: "", " on rank 1", " on ranks 1 and 3".
std::string OnRanks(const std::vector<int>& speaking, std::size_t ranks) {
  if (speaking.size() == ranks) return "";
  if (speaking.size() == 1) return absl::StrCat(" on rank ", speaking[0]);
  const std::vector<int> but_last(speaking.begin(), speaking.end() - 1);
  return absl::StrCat(" on ranks ", absl::StrJoin(but_last, ", "), " and ", speaking.back());
}

absl::Status Stopped(const Loop& loop, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("training stopped in epoch ", loop.state.epoch + 1, ": ", why,
                   "; lower --lr, bound gradients with --clip",
                   loop.job.options.on_nonfinite == OnNonFinite::kStop
                       ? ", or leave such steps out with --on-nonfinite skip"
                       : ""));
}

std::string WordOnParameter(const std::string& broken) {
  return broken.empty() ? "" : kParameter + broken;
}

// A parameter that is not finite, and its ranks.
struct Broken {
  std::string name;
  std::string where;  // OnRanks
};

std::optional<Broken> FindBroken(const std::vector<std::string>& words) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (!words[rank].empty() && words[rank][0] == kParameter) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  if (ranks.empty()) return std::nullopt;
  return Broken{words[static_cast<std::size_t>(ranks[0])].substr(1), OnRanks(ranks, words.size())};
}

absl::Status BrokenBy(const Loop& loop, std::int64_t step, const Broken& broken) {
  if (step == loop.resumed_step) {
    return Stopped(loop, absl::StrCat(broken.name, " was NaN or infinite", broken.where,
                                      " before the first step"));
  }
  return Stopped(
      loop, absl::StrCat("step ", step, " made ", broken.name, " NaN or infinite", broken.where));
}

}  // namespace

std::string WordOnLoss(double loss, const std::string& not_finite) {
  if (std::isfinite(loss)) return "";
  return not_finite.empty() ? kLossAlone : WordOnParameter(not_finite);
}

absl::Status NonFiniteLoss(const Loop& loop, std::int64_t step, const std::string& mine) {
  const std::vector<std::string> words = loop.job.group().Gather(mine, kMostBytesOfWord);
  // The loss depends on the parameters, which were broken by the step before.
  if (const auto broken = FindBroken(words)) return BrokenBy(loop, step - 1, *broken);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (!words[rank].empty()) ranks.push_back(static_cast<int>(rank));
  }
  // Each rank's own loss is finite, but their sum is not: losses near the largest number.
  if (ranks.empty()) ranks.resize(words.size());
  return Stopped(loop, absl::StrCat("the loss of step ", step, " is NaN or infinite",
                                    OnRanks(ranks, words.size())));
}

absl::StatusOr<bool> FitToKeep(const Loop& loop) {
  const bool ignore = loop.job.options.on_nonfinite == OnNonFinite::kIgnore;
  if (ignore && loop.job.options.checkpoint.directory.empty()) return true;
  const std::string mine = WordOnParameter(FirstNotFinite(loop.strategy.StateDict()));
  if (loop.job.group().Sum({mine.empty() ? 0.0 : 1.0})[0] == 0) return true;
  const Broken broken = FindBroken(loop.job.group().Gather(mine, kMostBytesOfWord)).value();
  if (!ignore) return BrokenBy(loop, loop.state.step, broken);
  if (loop.job.leads()) {
    loop.job.progress.Say(absl::StrCat("no checkpoint is written after step ", loop.state.step,
                                       ": ", broken.name, " is NaN or infinite", broken.where));
  }
  return false;
}

}  // namespace muster::trainer
