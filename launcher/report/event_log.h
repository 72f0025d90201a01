// The event log (--event-log): what happened to this node, one JSON object per line, for programs.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/report/agent_event.h"

namespace muster::launcher {

// Lines are appended, each by one write, so that the agents of one machine may share a file. A line
// that cannot be written is lost; the run continues. On the loop's thread.
//
//   {"time":"2026-11-21T04:10:00.123Z","monotonic":5321.000412,"event":"worker_failed",
//    "job":"j7","node":"host-17-x3k2p9","round":0,"rank":3,"pid":4711,"cause":"exited with code 1"}
//
// `time` is the wall clock's, UTC; `monotonic` is seconds of CLOCK_MONOTONIC, which no clock step
// disturbs and which all processes of one machine share. `round`, `rank`, `pid` and `cause` are
// present if the event has them.
class EventLog {
 public:
  // Opens `path` for appending, and creates it (mode 0600) if it is missing. A link is followed,
  // unless it is another user's (base/safe_path.h). The error is one line:
  // "open the event log /x/y: Permission denied".
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& path, std::string job,
                                                        std::string node);
  void Write(const AgentEvent& event);

  // Lines that were lost.
  int lost() const { return lost_; }

 private:
  EventLog(base::UniqueFd file, std::string job, std::string node)
      : file_(std::move(file)), job_(std::move(job)), node_(std::move(node)) {}

  const base::UniqueFd file_;
  const std::string job_;
  const std::string node_;
  int lost_ = 0;
};

// The line for `event`, without its end. `monotonic` is the time since the clock's epoch.
std::string EventLine(const AgentEvent& event, const std::string& job, const std::string& node,
                      std::chrono::system_clock::time_point time,
                      std::chrono::steady_clock::time_point monotonic);

}  // namespace muster::launcher
