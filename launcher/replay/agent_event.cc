#include "launcher/replay/agent_event.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "base/failure.h"
#include "base/json.h"
#include "base/safe_path.h"
#include "base/version.h"

namespace muster::launcher {
namespace {

using enum EventField;
using enum AgentEventKind;
using Type = EventFieldRow::Type;

constexpr EventFieldRow kFields[] = {
    {kTime, "time", Type::kText, 0,
     R"(^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$)",
     "the node's wall clock, UTC"},
    {kMonotonic, "monotonic", Type::kNumber, 0, "",
     "seconds of the machine's CLOCK_MONOTONIC, to the microsecond: no clock step disturbs it, and "
     "all processes of a machine share it"},
    {kEvent, "event", Type::kText, 0, "", "what happened: a name of the table of events"},
    {kJob, "job", Type::kText, 0, "", "the run id"},
    {kNode, "node", Type::kText, 0, "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
     "the node's id, unique for each agent process"},
    {kVersion, "version", Type::kInteger, 1, "", "the format version of the lines that follow"},
    {kMuster, "muster", Type::kText, 0, "", "the version of the program that writes them"},
    {kWorkers, "workers", Type::kInteger, 1, "", "how many workers the node runs in each round"},
    {kRound, "round", Type::kInteger, 0, "", "the round it is about"},
    {kRank, "rank", Type::kInteger, 0, "", "the worker it is about: its global rank"},
    {kPid, "pid", Type::kInteger, 1, "", "that worker's pid on its node"},
    {kIncarnation, "incarnation", Type::kText, 0, "^[0-9a-f]{16}$",
     "which life of the job it is: no other job of that name has the same"},
    {kNodeRank, "node_rank", Type::kInteger, 0, "", "the node's rank among the round's nodes"},
    {kNodes, "nodes", Type::kInteger, 1, "", "how many nodes the round has"},
    {kFirstRank, "first_rank", Type::kInteger, 0, "", "the global rank of the node's first worker"},
    {kWorldSize, "world_size", Type::kInteger, 1, "", "how many workers the round has"},
    {kCause, "cause", Type::kText, 0, "", "more, for people; the table of events says what"},
};

constexpr EventFields kPlace =
    In(kIncarnation) | In(kNodeRank) | In(kNodes) | In(kFirstRank) | In(kWorldSize);
constexpr EventFields kOfRound = In(kRound) | In(kCause);
constexpr EventFields kOfWorker = In(kRound) | In(kRank);

constexpr EventRow kEvents[] = {
    {kLogOpened, "log_opened", In(kVersion) | In(kMuster) | In(kWorkers), 0,
     "the first line of each agent"},
    {kJoining, "joining", 0, 0, "the node asks for a place in the next round"},
    {kWaiting, "waiting", kOfRound, 0, "there is no place yet", "why not"},
    {kAssigned, "assigned", kOfRound | kPlace, 0, "the node has a place in a round",
     "why it has this rank"},
    {kWorkersStarted, "workers_started", In(kRound), 0, "every worker of the node runs"},
    {kFirstBeat, "first_beat", kOfWorker, 0,
     "a worker says for the first time in this round that it makes progress"},
    {kWorkerStopped, "worker_stopped", kOfWorker | In(kPid) | In(kCause), 0,
     "a worker is stopped, by SIGSTOP or the like", "what stopped it"},
    {kWorkerContinued, "worker_continued", kOfWorker | In(kPid), 0, "it continues"},
    {kOutputLost, "output_lost", kOfWorker | In(kCause), 0,
     "a log file of a worker does not take all that it prints", "which and why"},
    {kStraggler, "straggler", kOfRound, In(kRank),
     "a rank of the job is found to be slower than the others; in the log of node rank 0",
     "by how much and in what, a sentence"},
    {kStragglerOver, "straggler_over", kOfRound, In(kRank), "it no longer is",
     "after how long, a sentence"},
    {kHang, "hang_detected", kOfWorker | In(kCause), 0, "a worker gives no sign of life",
     "for how long"},
    {kOperations, "operations", kOfRound, 0, "in which operations the workers are",
     "which rank is where"},
    {kEvidence, "evidence", kOfWorker | In(kCause), 0,
     "what a worker was doing has been written down", "the file; empty if there is none"},
    {kUnfit, "health_check_failed", In(kCause), In(kRound), "the node's health check failed",
     "how"},
    {kWorkerFailed, "worker_failed", kOfWorker | In(kCause), In(kPid),
     "the first failure of a worker here in this round", "how it ended"},
    {kToldToStop, "told_to_stop", kOfRound, 0, "the rendezvous says that the round is over", "why"},
    {kStopping, "stopping", In(kCause), In(kRound), "the workers are being ended",
     "the signal that they get"},
    {kWorkersGone, "workers_gone", kOfRound, 0, "no worker of the node is left", "how they ended",
     "succeeded|failed|stopped"},
    {kSignal, "signal", In(kCause), In(kRound), "the agent was sent a signal", "its name"},
    {kDrained, "node_drained", In(kCause), In(kRound),
     "the node leaves the job, as the scheduler drains it", "who drains it, and why"},
    {kOutOfTouch, "reconnecting", In(kCause), In(kRound), "the connection to the rendezvous broke",
     "why"},
    {kBackInTouch, "reconnected", In(kCause), In(kRound), "it is there again",
     "for how long it was not"},
    {kFenced, "self_fenced", In(kCause), In(kRound),
     "out of touch for so long that the workers must end", "why"},
    {kEvicted, "evicted", In(kCause), In(kRound), "the rendezvous has given the node's place away",
     "why"},
    {kLost, "rendezvous_lost", In(kCause), In(kRound), "the rendezvous is gone", "why"},
    {kVerdict, "verdict", In(kCause), In(kRound), "the job has ended", "its verdict, a sentence"},
};

// Rows are looked up by their index.
constexpr bool InOrder() {
  std::size_t at = 0;
  for (const EventFieldRow& row : kFields) {
    if (static_cast<std::size_t>(row.field) != at++) return false;
  }
  at = 0;
  for (const EventRow& row : kEvents) {
    if (static_cast<std::size_t>(row.kind) != at++) return false;
  }
  return at == static_cast<std::size_t>(kVerdict) + 1;
}
static_assert(InOrder());

}  // namespace

absl::Span<const EventFieldRow> EventFieldTable() {
  return kFields;
}

absl::Span<const EventRow> EventTable() {
  return kEvents;
}

const EventRow* FindEvent(absl::string_view name) {
  for (const EventRow& row : kEvents) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

namespace {

using base::Json;

// The value of one field; null if the event has none.
Json ValueOf(EventField field, const AgentEvent& event, const EventLogHead& head) {
  const std::optional<EventPlace>& place = event.place;
  switch (field) {
    case EventField::kJob:
      return head.job;
    case EventField::kNode:
      return head.node;
    case EventField::kVersion:
      return kEventLogVersion;
    case EventField::kMuster:
      return base::kVersion;
    case EventField::kWorkers:
      return head.workers;
    case EventField::kRound:
      return event.round != rendezvous::kNoRound ? Json(event.round) : Json();
    case EventField::kRank:
      return event.rank >= 0 ? Json(event.rank) : Json();
    case EventField::kPid:
      return event.pid != 0 ? Json(event.pid) : Json();
    case EventField::kIncarnation:
      // As text, because many JSON readers round numbers of this size to a double.
      return place ? Json(absl::StrFormat("%016x", place->incarnation)) : Json();
    case EventField::kNodeRank:
      return place ? Json(place->node_rank) : Json();
    case EventField::kNodes:
      return place ? Json(place->nodes) : Json();
    case EventField::kFirstRank:
      return place ? Json(place->first_rank) : Json();
    case EventField::kWorldSize:
      return place ? Json(place->world_size) : Json();
    case EventField::kCause:
      return event.cause;
    case EventField::kTime:
    case EventField::kMonotonic:
    case EventField::kEvent:
      break;
  }
  return Json();
}

}  // namespace

std::string EventLine(const AgentEvent& event, const EventLogHead& head,
                      std::chrono::system_clock::time_point time,
                      std::chrono::steady_clock::time_point monotonic) {
  const EventRow& row = EventTable()[static_cast<std::size_t>(event.kind)];
  Json line;
  line["time"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(time), absl::UTCTimeZone());
  line["monotonic"] = std::chrono::duration<double>(std::chrono::round<std::chrono::microseconds>(
                                                        monotonic.time_since_epoch()))
                          .count();
  line["event"] = row.name;
  for (const EventFieldRow& field : EventFieldTable()) {
    const EventFields bit = In(field.field);
    if (((kCommonFields | row.always | row.sometimes) & bit) == 0) continue;
    Json value = ValueOf(field.field, event, head);
    if (!value.is_null()) line[std::string(field.name)] = std::move(value);
  }
  return base::JsonText(line);
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::string& path,
                                                         EventLogHead head) {
  absl::StatusOr<base::UniqueFd> file =
      base::OpenFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, 0600);
  if (!file.ok()) {
    return base::Failure(absl::StatusCode::kFailedPrecondition, "open the event log", path,
                         file.status().message());
  }
  auto log = std::unique_ptr<EventLog>(new EventLog(*std::move(file), std::move(head)));
  log->Write({.kind = AgentEventKind::kLogOpened});
  return log;
}

void EventLog::Write(const AgentEvent& event) {
  const std::string line =
      EventLine(event, head_, std::chrono::system_clock::now(), std::chrono::steady_clock::now()) +
      "\n";
  if (write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) ++lost_;
}

}  // namespace muster::launcher
