#include "launcher/report/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/safe_path.h"
#include "base/version.h"
#include "launcher/report/event_table.h"

namespace muster::launcher {
namespace {

using base::Json;

// What one field of a line says; null where the event says nothing of it.
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
      // A number that large is rounded by readers for whom every number is a double.
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
