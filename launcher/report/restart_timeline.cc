#include "launcher/report/restart_timeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster::launcher {

void RestartTimeline::On(const AgentEvent& event, Time time) {
  // What happens twice (two failures, a failure and the order to stop) counts the first time.
  const auto begin = [&](std::string cause) {
    if (!current_) {
      current_ = Restart{.round = event.round, .cause = std::move(cause), .detected = time};
    }
  };
  const auto mark = [&](std::optional<Time>& step) {
    if (!step) step = time;
  };
  switch (event.kind) {
    case AgentEventKind::kWorkerFailed:
      begin(absl::StrCat("rank ", event.rank, " ", event.cause));
      break;
    case AgentEventKind::kToldToStop:
      begin(event.cause);
      mark(current_->told);
      break;
    case AgentEventKind::kFenced:
    case AgentEventKind::kEvicted:
      begin(event.cause);
      break;
    case AgentEventKind::kWorkersGone:
      if (current_) mark(current_->stopped);
      break;
    case AgentEventKind::kJoining:
      if (current_) mark(current_->rejoined);
      break;
    case AgentEventKind::kWorkersStarted:
      if (!current_) break;
      current_->started = time;
      current_->next_round = event.round;
      done_.push_back(*std::exchange(current_, std::nullopt));
      break;
    case AgentEventKind::kFirstBeat:
      if (!done_.empty() && done_.back().next_round == event.round) mark(done_.back().first_beat);
      break;
    case AgentEventKind::kLogOpened:
    case AgentEventKind::kWorkerStopped:
    case AgentEventKind::kWorkerContinued:
    case AgentEventKind::kOutputLost:
    case AgentEventKind::kStraggler:
    case AgentEventKind::kStragglerOver:
    case AgentEventKind::kHang:
    case AgentEventKind::kOperations:
    case AgentEventKind::kEvidence:
    case AgentEventKind::kUnfit:
    case AgentEventKind::kWaiting:
    case AgentEventKind::kAssigned:
    case AgentEventKind::kStopping:
    case AgentEventKind::kSignal:
    case AgentEventKind::kDrained:
    case AgentEventKind::kOutOfTouch:
    case AgentEventKind::kBackInTouch:
    case AgentEventKind::kLost:
    case AgentEventKind::kVerdict:
      break;
  }
}

std::vector<std::string> RestartTimeline::Lines() const {
  std::vector<std::string> lines;
  for (const Restart& restart : done_) {
    const auto after = [&](Time time) {
      const std::chrono::duration<double, std::milli> ms = time - restart.detected;
      return absl::StrFormat("%.1f ms", ms.count());
    };
    std::vector<std::string> steps;
    const auto add = [&](const char* step, const std::optional<Time>& time) {
      if (time) steps.push_back(absl::StrCat(step, " ", after(*time)));
    };
    add("told", restart.told);
    add("stopped", restart.stopped);
    add("rejoined", restart.rejoined);
    add("first beat", restart.first_beat);
    lines.push_back(absl::StrCat("round ", restart.round, " ended: ", restart.cause,
                                 "; the workers of round ", restart.next_round, " ran ",
                                 after(restart.started), " later (", absl::StrJoin(steps, ", "),
                                 ")"));
  }
  return lines;
}

}  // namespace muster::launcher
