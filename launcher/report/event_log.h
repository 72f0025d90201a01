// The event log (--event-log): what happened to this node, one JSON object per line, for programs.
// docs/event_log.md describes it, and event_table.h is its format.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/report/agent_event.h"

namespace muster::launcher {

// What an agent's lines have in common.
struct EventLogHead {
  std::string job;
  std::string node;
  int workers = 1;  // of this node, in each round
};

// Lines are appended, each by one write, so that the agents of one machine may share a file. A line
// that cannot be written is lost; the run continues. On the loop's thread.
//
//   {"time":"2026-11-21T04:10:00.123Z","monotonic":5321.000412,"event":"worker_failed",
//    "job":"j7","node":"host-17-x3k2p9","round":0,"rank":3,"pid":4711,"cause":"exited with code 1"}
class EventLog {
 public:
  // Opens `path` for appending, creates it (mode 0600) if it is missing, and writes the line that
  // names the format's version. A link is followed, unless it is another user's
  // (base/safe_path.h). The error is one line: "open the event log /x/y: Permission denied".
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path, EventLogHead head);
  void Write(const AgentEvent& event);

  // Lines that were lost.
  int lost() const { return lost_; }

 private:
  EventLog(base::UniqueFd file, EventLogHead head)
      : file_(std::move(file)), head_(std::move(head)) {}

  const base::UniqueFd file_;
  const EventLogHead head_;
  int lost_ = 0;
};

// The line for `event`, without its end. `monotonic` is the time since the clock's epoch.
std::string EventLine(const AgentEvent& event, const EventLogHead& head,
                      std::chrono::system_clock::time_point time,
                      std::chrono::steady_clock::time_point monotonic);

}  // namespace muster::launcher
