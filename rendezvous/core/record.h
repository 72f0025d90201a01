// What the daemon must remember of a job to resume it after being killed: the values that a journal
// keeps. Plain data; times are durations from the moment the record was made, as no clock outlives
// the machine's restart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_value.h"
#include "rendezvous/core/key_map.h"
#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// One agent's part in a job, whichever connections it comes over; numbered in order of attendance.
using AttendeeId = std::uint64_t;

// A node of the round before whose place is kept (Round::Returning).
struct ReturningRecord {
  std::string node_id;
  std::string host;
  int group_rank = 0;

  bool operator==(const ReturningRecord&) const = default;
};

struct RoundRecord {
  RoundNumber number = 0;
  bool complete = false;
  bool anyone_returned = false;
  base::SharedValue<KeyMap<int>> previous_ranks;
  std::vector<ReturningRecord> outstanding;
  std::vector<SharedNode> joined;  // in order of arrival; once it is complete they are `members`
  std::vector<SharedNode> spares;
  std::vector<Placement> members;  // by group rank
  // Time until it gives up, until the last call is over, and until it may be complete at the
  // earliest; zero or less: that time has come. A round that is held when the record is used is
  // held until a node that was lost has had time to hear of it
  // (Coordinator::Options::restart_grace).
  Duration gives_up_in{};
  std::optional<Duration> last_call_in;
  std::optional<Duration> held_for;

  bool operator==(const RoundRecord&) const = default;
};

struct AttendeeRecord {
  AttendeeId id = 0;
  SharedNode node;
  NodeState state = NodeState::kJoined;
  int group_rank = -1;
  bool leaving = false;
  RoundNumber ran = kNoRound;  // the last round it was to start workers in
  // How it comes back, and what it was promised. An attendee without a session cannot come back,
  // and is lost when the record is used.
  SessionToken session;
  Duration lease{};
  Duration keep_alive{};

  bool operator==(const AttendeeRecord&) const = default;
};

// The same failure, again and again (RestartPolicy::no_progress_limit).
struct RepeatedFailure {
  int rank = -1;
  std::string what;
  int times = 0;

  bool operator==(const RepeatedFailure&) const = default;
};

// Without attendees it is a job that has ended, whose verdict is kept for nodes that come back; or,
// if it has no verdict, one whose nodes were all lost and may come back.
struct JobRecord {
  std::string run_id;
  Incarnation incarnation = 0;
  JobSettings settings;
  RoundRecord round;
  bool started = false;
  std::vector<int> succeeded;  // group ranks of the round
  int rounds_run = 0;
  int restarts = 0;
  std::vector<Duration> restart_ages;  // of those in the window, oldest first
  RepeatedFailure repeated;
  std::string over_reason;  // why the round before this one ended
  std::optional<Verdict> verdict;
  std::vector<AttendeeRecord> attendees;
  // Time until the workers of lost nodes are certainly dead; zero: they are.
  Duration workers_gone_in{};
  // Ids of nodes that were lost since the last round began, and may still exist and come back.
  std::vector<std::string> lost;
  // For those who look; nothing is decided by it.
  HistorySnapshot history;

  bool operator==(const JobRecord&) const = default;
};

}  // namespace muster::rendezvous
