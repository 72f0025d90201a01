// What agents send to the Coordinator: the values that enter the core. The mirror of Directive.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/log_request.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// An agent comes back over a new connection, after the old one broke or the daemon was restarted.
// Answered with Welcome and what it has to do now; with Evicted when no such session attends (the
// agent may then Join with a new session); or with Refused on the older of two connections.
struct Resume {
  SessionToken session;
  // Which of the session's connections this is; increases with each.
  std::uint64_t connection = 0;
  SpokenVersions speaks{};

  bool operator==(const Resume&) const = default;
};

// A sign of life, answered with Heard. So is every other event, without the answer.
struct KeepAlive {
  std::int64_t number = 0;
  // The last keep-alive whose answer the agent has received; 0: none. However late this event
  // arrives, the agent was alive after that answer was sent.
  std::int64_t heard = 0;
  // Bytes of its workers' output that log files did not take, since the agent started.
  std::uint64_t log_bytes_lost = 0;
  // What this node's ranks have reported since the last keep-alive; on a new connection everything.
  // Ignored if it is about a round that is over.
  Progress progress{};

  bool operator==(const KeepAlive&) const = default;
};

// All of this node's workers in `round` have called exec.
struct WorkersStarted {
  RoundId round;

  bool operator==(const WorkersStarted&) const = default;
};

// All of them have exited with 0, or one has failed.
struct WorkersExited {
  RoundId round;
  WorkersOutcome outcome;
  // How long ago the worker failed, by its agent's clock, when this was sent. The transit time is
  // unknown.
  Duration failed_ago{};

  bool operator==(const WorkersExited&) const = default;
};

// The agent will leave once its workers are gone: the others stop now, and the next round waits for
// it.
struct Leaving {
  std::string reason;

  bool operator==(const Leaving&) const = default;
};

// The agent wants to leave, because its scheduler drains its node, if the job can go on without it.
// Answered with LeaveAnswer; a yes has the effect of Leaving. Only from version kLeaveAnswers on:
// before, an agent decides for itself.
struct AskToLeave {
  // The last round in which it had workers, if any.
  RoundId round;
  // "Slurm drains it (bad fan)".
  std::string reason;

  bool operator==(const AskToLeave&) const = default;
};

// The agent leaves; its workers are gone. An empty reason need not be reported. Always the last
// event.
struct Goodbye {
  std::string reason;

  bool operator==(const Goodbye&) const = default;
};

// A JoinRequest opens the session (answered with Welcome or Refused), or asks for the round after
// the one that the agent was told to stop.
using Event = std::variant<JoinRequest, Resume, KeepAlive, WorkersStarted, WorkersExited, Leaving,
                           AskToLeave, Goodbye>;

// What the Coordinator sends to agents and observers: the values that leave the core.

// Answers the first Join and each Resume: the agent attends the job. `keep_alive` is the longest
// time between keep-alives, `lease` how long the agent may be silent; both are zero for an agent
// without a lease.
struct Welcome {
  Duration keep_alive{};
  Duration lease{};
  Incarnation incarnation = 0;
  // The job survives a crash of the daemon and its restart.
  bool durable = false;
  // The secret by which the agent recognizes the process that answers for a dead daemon
  // (wire/liveness_probe.h); empty: there is none. Filled in by the front that sends this, as the
  // core has no secrets.
  std::string knock_secret;
  // The protocol version that both sides use.
  int version = 1;
};

// Answers KeepAlive `number`: the daemon has received it, and everything sent before it.
struct Heard {
  std::int64_t number = 0;
};

// Why there is no Assignment yet. `spare`: the round is full without this node.
struct Waiting {
  RoundNumber round = 0;
  std::string sentence;
  bool spare = false;
};

// The round is over: stop its workers, then Join again.
struct Stop {
  RoundNumber round = 0;
  std::string reason;
  Incarnation incarnation = 0;

  RoundId id() const { return {incarnation, round}; }
};

// An event named a round that is over, and was ignored.
struct Fenced {
  RoundNumber round = 0;
  std::string sentence;
  Incarnation incarnation = 0;
};

// Changes nothing for this node, but its user should know.
struct Notice {
  // What it is about.
  enum class Kind {
    kOther,
    kStraggler,      // a rank has become one
    kStragglerOver,  // it is no longer one
  };

  std::string sentence;
  Kind kind = Kind::kOther;
  // nullopt: not about a single rank.
  std::optional<int> rank{};
};

// The agent does not attend, or no longer does: everything it sends from now on is ignored.
struct Refused {
  std::string sentence;
  // The limit that caused it, if any; for counting, not sent on the wire.
  const Limit* limit = nullptr;
};

// The agent was not heard from for its lease, so it no longer attends and its place is given away.
// It may join again, as a new attendee, once its workers are gone.
struct Evicted {
  std::string sentence;
};

// A reader wants what workers of this node print in `round`, or have printed: the agent sends it to
// `delivery` (RendezvousClient::DeliverLog).
struct LogWanted {
  std::uint64_t delivery = 0;
  RoundId round;
  // Only ranks that the node had in that round.
  std::vector<RankRange> ranks;
  LogExtent extent;
};

// Answers AskToLeave.
struct LeaveAnswer {
  // The job goes on without this node: it stops its workers and says goodbye, whatever the round.
  bool may_leave = false;
  // Otherwise why it has to stay; completes "this node stays in the job: ...".
  std::string why_not;
};

// An Assignment starts the workers; a Verdict ends the job.
using Directive = std::variant<Welcome, Waiting, Assignment, Stop, Fenced, Verdict, Refused, Notice,
                               Heard, Evicted, LogWanted, LeaveAnswer>;

// A directive with its addressee. A directive to many agents is one shared value: a job may have
// ten thousand nodes, and directives are handed on several times.
struct Outgoing {
  Outgoing(AgentId addressee, std::shared_ptr<const Directive> said)
      : to(addressee), shared(std::move(said)) {}
  Outgoing(AgentId addressee, Directive said)
      : Outgoing(addressee, std::make_shared<const Directive>(std::move(said))) {}

  const Directive& directive() const { return *shared; }

  AgentId to = 0;
  std::shared_ptr<const Directive> shared;
};

// Something that happened to a job, for the log; reported once, where it happens.
struct Transition {
  std::string run_id;
  RoundNumber round = kNoRound;
  std::string node;  // id of the node it is about, or empty
  std::string text;
  // Set if the event counts in metrics.
  std::variant<std::monostate, RoundStarted, RoundRuns, RoundOver, JobEnded> milestone{};
};

// The effects of a call to the Coordinator, in order.
struct Outbox {
  std::vector<Outgoing> directives;
  std::vector<Transition> transitions;
  // Run ids of jobs whose record (JobRecord) has changed and must be saved.
  std::set<std::string> changed_jobs;
  // Run ids of jobs that no longer exist; their stores are gone too.
  std::vector<std::string> forgotten_jobs;

  bool empty() const {
    return directives.empty() && transitions.empty() && changed_jobs.empty() &&
           forgotten_jobs.empty();
  }
};

}  // namespace muster::rendezvous
