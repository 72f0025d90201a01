// What the daemon must remember of a job to resume it after a crash: the values that a journal
// keeps. Plain data; times are durations relative to the time of the record, as a monotonic clock
// does not survive a reboot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "rendezvous/core/values/key_map.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Which node gets which group rank, and why. A pure function of the round's membership.

// A node that is in the round, with its group rank in the round before (-1: it had none).
struct Candidate {
  Candidate(SharedNode node, int previous_rank = -1);

  SharedNode node;
  int previous_rank;
  // Sort key of a node that had no rank, compared byte by byte. Built here, because ten thousand
  // nodes arrive one by one and are sorted all at once.
  std::string order;
};

// A node with its place. `reason` is shown to people: "keeps rank 1", "asked for node rank 0",
// "fills rank 2".
struct Placement {
  SharedNode node;
  int group_rank = 0;
  std::string reason;

  bool operator==(const Placement&) const = default;
};

// Gives the candidates the group ranks 0..n-1, one each, and returns them in that order. The result
// does not depend on the order of the argument. In this order of strength:
//  1. a node keeps the rank it had, as long as the round is large enough for it;
//  2. a node that asked for a rank (rank_hint) gets it, when every newcomer's hint fits into the
//    round and no node keeps that rank; otherwise hints only define an order;
//  3. nodes without a hint come after those with one: neighbours in the topology next to one
//    another, then in natural order of address ("node2" before "node10"), then of host name, as
//    nodes behind one NAT or tunnel share an address, then of node id.
// Newcomers, and nodes whose old rank no longer exists, fill the free ranks from the lowest.
// Previous ranks must be distinct, or -1.
std::vector<Placement> OrderRanks(std::vector<Candidate> candidates);

// One agent's part in a job, over all its connections; numbered in order of session.
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
  std::vector<SharedNode> joined;  // in order of arrival; once the round is complete they are
                                   // `members`
  std::vector<SharedNode> spares;
  std::vector<Placement> members;  // by group rank
  // Time until it gives up, until the last call is over, and the earliest time it may be complete;
  // zero or less: that time has come. A round that is held when the record is restored stays held
  // until a lost node has had time to learn of its loss (Coordinator::Options::restart_grace).
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
  RoundNumber ran = kNoRound;  // the last round it was told to start workers in
  // How it comes back, and what it was promised. An attendee without a session cannot come back,
  // and is lost on restore.
  SessionToken session;
  Duration lease{};
  Duration keep_alive{};

  bool operator==(const AttendeeRecord&) const = default;
};

// A failure that repeats (RestartPolicy::no_progress_limit).
struct RepeatedFailure {
  int rank = -1;
  std::string what;
  int times = 0;

  bool operator==(const RepeatedFailure&) const = default;
};

// A record without attendees is a job that has ended, whose verdict is kept for nodes that come
// back; or, without a verdict, one whose nodes were all lost and may come back.
struct JobRecord {
  std::string run_id;
  Incarnation incarnation = 0;
  JobSettings settings;
  RoundRecord round;
  bool started = false;
  std::vector<int> succeeded;  // group ranks of the round
  int rounds_run = 0;
  int restarts = 0;
  std::vector<Duration> restart_ages;  // within the window, oldest first
  RepeatedFailure repeated;
  std::string over_reason;  // why the round before this one ended
  std::optional<Verdict> verdict;
  std::vector<AttendeeRecord> attendees;
  // Time until the workers of lost nodes are certainly dead; zero: they already are.
  Duration workers_gone_in{};
  // Ids of nodes that were lost since the last round began, and may still exist and come back.
  std::vector<std::string> lost;
  // For display; no decision depends on it.
  HistorySnapshot history;

  bool operator==(const JobRecord&) const = default;
};

}  // namespace muster::rendezvous
