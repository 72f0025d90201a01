// Events of one node of a run, as its agent sees them: for the event log and the timeline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/unique_fd.h"
#include "rendezvous/core/values/types.h"

namespace muster::launcher {

enum class AgentEventKind {
  kLogOpened,        // the event log begins; written by EventLog itself only
  kJoining,          // asks for a place in the next round
  kWaiting,          // has no place yet; `cause` says why
  kAssigned,         // has a place; `cause` is the reason for its rank
  kWorkersStarted,   // all workers run
  kFirstBeat,        // a worker's first report of progress; `rank`
  kWorkerStopped,    // by SIGSTOP or the like; `rank`, `pid`, and `cause` is what stopped it
  kWorkerContinued,  // `rank`, `pid`
  kOutputLost,       // a log file does not take all output; `rank`, and `cause` is which and why
  kStraggler,      // a rank anywhere is slow; `cause` is a sentence, `rank` is -1 for several ranks
  kStragglerOver,  // it is no longer slow; fields as for kStraggler
  kHang,           // a worker is silent; `rank`, and `cause` is for how long
  kOperations,     // where the workers are; `cause` is a sentence of worker::ExplainFlights
  kEvidence,       // what a worker was doing was recorded; `rank`, and `cause` is the file
  kUnfit,          // the health check failed; `cause` says how
  kWorkerFailed,   // the first failure here; `rank`, `pid`, and `cause` is how it exited
  kToldToStop,     // the round is over; `cause` says why
  kStopping,       // the workers are being stopped; `cause` is the signal
  kWorkersGone,    // no worker is left; `cause` is "succeeded", "failed" or "stopped"
  kSignal,         // the agent received a signal; `cause` is its name
  kDrained,        // the scheduler drains the node, which leaves; `cause` says who and why
  kOutOfTouch,     // the connection to the rendezvous broke; `cause` says why
  kBackInTouch,    // connected again; `cause` is for how long it was not
  kFenced,         // out of touch for so long that the workers must stop; `cause` says why
  kEvicted,        // the rendezvous gave this node's place away; `cause` says why
  kLost,           // the rendezvous is gone; `cause` says why
  kVerdict,        // the job has ended; `cause` is its verdict
};

// A node's place in a round.
struct EventPlace {
  rendezvous::Incarnation incarnation = 0;  // of the job
  int node_rank = 0;                        // its rank among `nodes`
  int nodes = 1;
  int first_rank = 0;  // the global rank of its first worker, of `world_size`
  int world_size = 1;
};

struct AgentEvent {
  AgentEventKind kind = AgentEventKind::kJoining;
  // The round, or kNoRound.
  rendezvous::RoundNumber round = rendezvous::kNoRound;
  // The worker's global rank, and its pid on this node; -1 and 0 if the event is not about a
  // worker.
  int rank = -1;
  int pid = 0;
  std::string cause;
  // For kAssigned only.
  std::optional<EventPlace> place = std::nullopt;
};

// The format of the event log as one table of events and fields. Writing (EventLog), reading
// (event_file.h), docs/event_log.md and its JSON schema are all derived from it.

// The version in `log_opened`. It grows when a field is removed or changes its meaning: older
// readers must then refuse the log. New events and fields do not change it.
inline constexpr int kEventLogVersion = 1;

// The order of the fields in a line.
enum class EventField {
  kTime,
  kMonotonic,
  kEvent,
  kJob,
  kNode,
  kVersion,
  kMuster,
  kWorkers,
  kRound,
  kRank,
  kPid,
  kIncarnation,
  kNodeRank,
  kNodes,
  kFirstRank,
  kWorldSize,
  kCause,
};

struct EventFieldRow {
  EventField field;
  absl::string_view name;
  // A number has a minimum, a text a regular expression or none.
  enum class Type { kText, kInteger, kNumber } type;
  std::int64_t minimum = 0;
  absl::string_view pattern = {};
  absl::string_view what;
};

// A set of fields.
using EventFields = std::uint32_t;

constexpr EventFields In(EventField field) {
  return EventFields{1} << static_cast<int>(field);
}

struct EventRow {
  AgentEventKind kind;
  absl::string_view name;
  // Fields in every line of this event, and fields in some lines, beyond the common ones.
  EventFields always = 0;
  EventFields sometimes = 0;
  absl::string_view what;
  // What `cause` means, if there is one; and its possible words, separated by '|', if they are
  // fixed.
  absl::string_view cause = {};
  absl::string_view cause_words = {};
};

// The fields of every line.
inline constexpr EventFields kCommonFields = In(EventField::kTime) | In(EventField::kMonotonic) |
                                             In(EventField::kEvent) | In(EventField::kJob) |
                                             In(EventField::kNode);

// In the order of EventField and AgentEventKind.
absl::Span<const EventFieldRow> EventFieldTable();
absl::Span<const EventRow> EventTable();

// The row with that name; null if there is none.
const EventRow* FindEvent(absl::string_view name);

// The event log (--event-log): the events of this node for programs, one JSON object per line
// (docs/event_log.md).

// What all lines of an agent have in common.
struct EventLogHead {
  std::string job;
  std::string node;
  int workers = 1;  // of this node, in each round
};

// Appends each line by one write, so that the agents of one machine can share a file. A line that
// cannot be written is lost; the run continues. On the loop's thread.
//
//   {"time":"2026-11-21T04:10:00.123Z","monotonic":5321.000412,"event":"worker_failed",
//    "job":"j7","node":"host-17-x3k2p9","round":0,"rank":3,"pid":4711,"cause":"exited with code 1"}
class EventLog {
 public:
  // Opens `path` for appending, creates it (mode 0600) if it is missing, and writes the line with
  // the format's version. Follows a link unless another user owns it (base/safe_path.h). An error
  // is one line: "open the event log /x/y: Permission denied".
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path, EventLogHead head);
  void Write(const AgentEvent& event);

  // The number of lost lines.
  int lost() const { return lost_; }

 private:
  EventLog(base::UniqueFd file, EventLogHead head)
      : file_(std::move(file)), head_(std::move(head)) {}

  const base::UniqueFd file_;
  const EventLogHead head_;
  int lost_ = 0;
};

// The line for `event`, without a line feed. `monotonic` is the time since the clock's epoch.
std::string EventLine(const AgentEvent& event, const EventLogHead& head,
                      std::chrono::system_clock::time_point time,
                      std::chrono::steady_clock::time_point monotonic);

}  // namespace muster::launcher
