// What must always be true of the Coordinator: checks its history.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"
#include "test/rendezvous/simulation/call.h"
#include "test/rendezvous/simulation/coverage.h"
#include "test/rendezvous/simulation/ranks.h"

namespace muster::rendezvous {

enum class Check {
  kRoundsIncrease,   // the rounds of a job strictly increase, and none is used twice
  kRanksPartition,   // see RanksObjection
  kOldRoundsFenced,  // a message of another round is answered Fenced and changes nothing; no other
                     // is
  kWaitBounded,      // a node that asks is answered within join_timeout
  kRoundSize,        // a round has min_nodes to max_nodes nodes
  kStopBeforeStart,  // a node is started only if it asked, and stopped before it is started again
  kAllAreStopped,    // when a round is over, each of its nodes is told
  kRestartBudget,    // restarts match failures, and are at most max_restarts
  kStickyRanks,      // a node that stays keeps its rank, if the round is large enough
  kOneVerdict,       // a job has one verdict, and all its nodes are told at once
  kVerdictIsTrue,    // the verdict follows from the events, and comes on time
  kEndIsEnd,         // after the verdict no node is started or stopped
  kPlacesAreKept,    // no round starts without a node of the previous one that may still come back
  kSparesAreNeeded,  // a spare waits only while there is no place for it
  kLeases,           // a node is lost exactly when its lease ends
  kDeadlines,        // NextDeadline is not later than what is due
  kAddressee,        // directives go only to agents that attend
  kOnlyWithCause,    // an event that changes nothing has no effects
  kEnoughStay,       // a node that asks may leave exactly if enough others stay
  kForgotten,        // a job is forgotten exactly when its last agent is gone
  kSnapshotIsTrue,   // Describe agrees with what the agents were told
};
const char* NameOf(Check check);

struct Violation {
  Check check;
  std::string sentence;
};

// Follows a history, call by call, with its own model: what each agent asked, was told and
// reported, in the order in which the Coordinator saw it. It knows the rules for outcomes, not how
// a Round computes them.
//
// Assumes that agents behave: they ask once, and again only after they were told to stop.
class Invariants {
 public:
  // `slack`: how late a tick may be, including halts of the clock.
  explicit Invariants(Duration slack) : slack_(slack) {}

  // Call this before a call to the Coordinator: returns the run ID of the sender's job if the event
  // is a message from a round that is over, else null. Such a call must not change the job. Valid
  // until Observe().
  const std::string* JobOfOldRound(const Call& event) const;
  // Checks the snapshots of the job before and after such a call.
  void ObserveOld(const Call& event, const JobSnapshot& before, const JobSnapshot& after);

  // `event` was passed to the Coordinator at `now`, and resulted in `outbox`.
  void Observe(const Call& event, const Outbox& outbox, TimePoint now);

  // The Coordinator's NextDeadline() after the last observed call.
  void ObserveDeadline(std::optional<TimePoint> deadline);

  // The Coordinator's description of a job after the last observed call.
  void ObserveSnapshot(const JobSnapshot& snapshot);

  // The violations found, in order. Later ones may be consequences of the first.
  const std::vector<Violation>& violations() const { return violations_; }
  const Coverage& coverage() const { return coverage_; }

 private:
  struct ModelJob {
    std::string run_id;
    JobSettings settings;
    int attending = 0;
    RoundNumber round = kNoRound;  // the last one that started
    bool running = false;
    TimePoint gathers_since{};   // unless running
    TimePoint held_until{};      // while it gathers: until then, workers of lost nodes may run
    TimePoint gone_by{};         // when all workers of lost nodes are dead
    std::set<std::string> lost;  // IDs of lost nodes that may come back
    std::map<std::string, int> ranks;  // of the last round, by node id
    int succeeded = 0;                 // of its nodes
    int rounds = 0;
    int restarts = 0;
    int restarts_started = 0;  // those for which a round has started
    std::optional<Verdict> verdict;
    bool must_end = false;  // the verdict is due in the current call
    // While it gathers: how many nodes ask, how many of the last round may still come back, and
    // since when there are enough of the former and none of the latter.
    int asking = 0;
    int expected = 0;
    std::optional<TimePoint> complete_since;
    // Since when there are none of the latter; the join timeout counts from then.
    std::optional<TimePoint> together_since;
  };
  enum class Phase {
    kAsking,   // has joined and is neither started nor told the verdict
    kStarted,  // has an Assignment
    kIdle,     // was told to stop, or the verdict
  };
  struct Attendance {
    ModelJob* job = nullptr;
    JoinRequest request;  // the last
    Phase phase = Phase::kAsking;
    TimePoint asked{};
    TimePoint heard{};
    Duration lease{};    // how long it may be silent
    bool spare = false;  // while asking: it was told that it is a spare
    bool leaving = false;
    bool told_verdict = false;
    RoundNumber round = kNoRound;  // in which it was last started
    bool succeeded = false;        // in it
  };
  // What a call may result in.
  enum class Expected {
    kAnything,
    kNothing,
    kFenced,  // only Fenced, to the sender
    kAnswer,  // at least Welcome or Refused to the sender
  };
  // A round that is being started: a sequence of Assignments.
  struct Starting {
    ModelJob* job = nullptr;
    std::vector<Member> members;
  };

  // Applies the event to the model, before the outcome is checked.
  Expected Apply(const Call& event, TimePoint now);
  Expected ApplyReport(const Call& event, Attendance& sender, TimePoint now);
  Expected ApplyQuestion(const Call& event, Attendance& sender, TimePoint now);
  void RoundIsOver(ModelJob& job, TimePoint now);
  void Forget(AgentId agent, TimePoint now);

  void CheckExpected(const Call& event, Expected expected, const std::vector<Outgoing>& directives);
  void CheckFenced(const Call& event, const std::vector<Outgoing>& directives);
  void CheckAnswer(const Call& event, const std::vector<Outgoing>& directives);
  void HearAll(const Call& event, const Outbox& outbox, TimePoint now);
  void Hear(const Call& event, const Outgoing& outgoing, TimePoint now);
  void HearWelcome(const Call& event, AgentId agent, const Welcome& welcome, TimePoint now);
  void HearRefused(const Call& event, AgentId agent, TimePoint now);
  void HearAssignment(AgentId agent, Attendance& node, const Assignment& assignment);
  void HearWaiting(AgentId agent, Attendance& node, const Waiting& waiting, TimePoint now);
  void HearStop(AgentId agent, Attendance& node, const Stop& stop);
  void HearVerdict(const Call& event, Attendance& node, const Verdict& verdict, TimePoint now);
  void CheckVerdict(const Call& event, const ModelJob& job, const Verdict& verdict, TimePoint now);
  void CheckRound(const Starting& round, TimePoint now);
  void CheckForgotten(const Outbox& outbox);
  // What must hold after every call.
  void CheckNodes(const Call& event, TimePoint now);
  void CheckNode(AgentId agent, const Attendance& node, TimePoint now);
  void CheckJobs(const Call& event, TimePoint now);

  template <typename... Parts>
  void Violate(Check check, const Parts&... parts) {
    violations_.push_back({check, absl::StrCat(parts...)});
  }

  const Duration slack_;
  bool draining_ = false;
  std::optional<bool> may_leave_;  // the observed call's sender, if it is to be told
  std::map<std::string, ModelJob> jobs_;
  // Forgotten jobs, and when the workers of their lost nodes are dead.
  std::map<std::string, TimePoint> busy_names_;
  std::set<std::string> given_way_;  // in the observed call
  std::map<AgentId, Attendance> attendances_;
  std::optional<TimePoint> due_;  // when the next lease or round needs attention
  std::vector<Violation> violations_;
  Coverage coverage_;
};

}  // namespace muster::rendezvous
