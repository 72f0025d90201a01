#include "launcher/report/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/safe_path.h"

namespace muster::launcher {
namespace {

const char* Name(AgentEventKind kind) {
  switch (kind) {
    case AgentEventKind::kJoining:
      return "joining";
    case AgentEventKind::kWaiting:
      return "waiting";
    case AgentEventKind::kAssigned:
      return "assigned";
    case AgentEventKind::kWorkersStarted:
      return "workers_started";
    case AgentEventKind::kFirstBeat:
      return "first_beat";
    case AgentEventKind::kWorkerStopped:
      return "worker_stopped";
    case AgentEventKind::kWorkerContinued:
      return "worker_continued";
    case AgentEventKind::kHang:
      return "hang_detected";
    case AgentEventKind::kOperations:
      return "operations";
    case AgentEventKind::kEvidence:
      return "evidence";
    case AgentEventKind::kUnfit:
      return "health_check_failed";
    case AgentEventKind::kWorkerFailed:
      return "worker_failed";
    case AgentEventKind::kToldToStop:
      return "told_to_stop";
    case AgentEventKind::kStopping:
      return "stopping";
    case AgentEventKind::kWorkersGone:
      return "workers_gone";
    case AgentEventKind::kSignal:
      return "signal";
    case AgentEventKind::kOutOfTouch:
      return "reconnecting";
    case AgentEventKind::kBackInTouch:
      return "reconnected";
    case AgentEventKind::kFenced:
      return "self_fenced";
    case AgentEventKind::kEvicted:
      return "evicted";
    case AgentEventKind::kLost:
      return "rendezvous_lost";
    case AgentEventKind::kVerdict:
      return "verdict";
  }
  return "";
}

}  // namespace

std::string EventLine(const AgentEvent& event, const std::string& job, const std::string& node,
                      std::chrono::system_clock::time_point time,
                      std::chrono::steady_clock::time_point monotonic) {
  base::Json line;
  line["time"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
  line["monotonic"] = std::chrono::duration<double>(std::chrono::round<std::chrono::microseconds>(
                                                        monotonic.time_since_epoch()))
                          .count();
  line["event"] = Name(event.kind);
  line["job"] = job;
  line["node"] = node;
  if (event.round != rendezvous::kNoRound) line["round"] = event.round;
  if (event.rank >= 0) line["rank"] = event.rank;
  if (event.pid != 0) line["pid"] = event.pid;
  if (!event.cause.empty()) line["cause"] = event.cause;
  return base::JsonText(line);
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& path, std::string job,
                                                         std::string node) {
  absl::StatusOr<base::UniqueFd> file =
      base::OpenFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, 0600);
  if (!file.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, "open the event log", path,
                         file.status().message());
  }
  return std::unique_ptr<EventLog>(new EventLog(*std::move(file), std::move(job), std::move(node)));
}

void EventLog::Write(const AgentEvent& event) {
  const std::string line = EventLine(event, job_, node_, std::chrono::system_clock::now(),
                                     std::chrono::steady_clock::now()) +
                           "\n";
  if (write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) ++lost_;
}

}  // namespace muster::launcher
