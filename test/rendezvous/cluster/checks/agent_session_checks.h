// Tracks which nodes attend which job according to the daemon: a lost node must not be brought back
// by something it sent earlier (I6).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/checks/violations.h"

namespace muster::rendezvous {

class AgentSessionChecks {
 public:
  explicit AgentSessionChecks(Violations& violations) : violations_(violations) {}

  // A job of the running daemon has changed at true time `now`, because of a message sent at
  // `sent`, if there was one. No `job`: it was forgotten.
  void OnChange(const std::string& run_id, const std::optional<JobRecord>& job,
                std::optional<TimePoint> sent, TimePoint now) {
    Nodes nodes;
    if (job) {
      for (const AttendeeRecord& attendee : job->attendees) {
        nodes[attendee.session] = attendee.node->node_id;
      }
    }
    Nodes& before = jobs_[run_id];
    for (const auto& [session, node] : before) {
      if (!nodes.contains(session)) ended_[session] = now;
    }
    for (const auto& [session, node] : nodes) {
      const auto ended = ended_.find(session);
      if (before.contains(session) || ended == ended_.end() || !welcomed_.contains(session))
        continue;
      if (sent && *sent >= ended->second) continue;
      violations_.Add(Check::kRevived,
                      absl::StrCat("job ", run_id, ": node ", node,
                                   " was lost, and what it had said before has brought it back"));
    }
    before = std::move(nodes);
  }
  // An agent knows that it attends with this session. One that does not know may join with it
  // again, and has no workers.
  void OnWelcomed(const SessionToken& session) { welcomed_.insert(session); }
  // A daemon has started from what was on the disk; everything else is undone.
  void OnRestart() {
    ended_.clear();
    jobs_.clear();
  }

 private:
  using Nodes = std::map<SessionToken, std::string>;

  Violations& violations_;
  std::map<std::string, Nodes> jobs_;
  std::map<SessionToken, TimePoint> ended_;
  std::set<SessionToken> welcomed_;
};

}  // namespace muster::rendezvous
