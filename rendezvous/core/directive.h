// What the Coordinator tells agents and observers: the values that leave the core.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/core/limits.h"
#include "rendezvous/core/log_request.h"
#include "rendezvous/core/milestone.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Answers the first Join and each Resume: the agent attends the job. `keep_alive` is how often it
// must at least be heard, `lease` how long it may be silent; both are zero for an agent without a
// lease.
struct Welcome {
  Duration keep_alive{};
  Duration lease{};
  Incarnation incarnation = 0;
  // The daemon remembers the job when it is killed and started again.
  bool durable = false;
  // By this secret the agent recognizes who answers for a dead daemon (wire/knock.h); empty: nobody
  // does. Filled in by the front that sends this, as the core has no secrets.
  std::string knock_secret;
  // Of the protocol, as both speak it.
  int version = 1;
};

// Answers KeepAlive `number`: the daemon has heard it, and everything sent before it.
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

// An event named a round that is over; nothing was done about it.
struct Fenced {
  RoundNumber round = 0;
  std::string sentence;
  Incarnation incarnation = 0;
};

// Something that changes nothing for this node, but that its user should know.
struct Notice {
  // What it is about.
  enum class Kind {
    kOther,
    kStraggler,      // a rank has become one
    kStragglerOver,  // it no longer is one
  };

  std::string sentence;
  Kind kind = Kind::kOther;
  // nullopt: not one rank alone.
  std::optional<int> rank{};
};

// The agent does not attend, or no longer does: nothing it sends from now on is heard.
struct Refused {
  std::string sentence;
  // For which, if it is for a limit; counted, and not on the wire.
  const Limit* limit = nullptr;
};

// The agent no longer attends, as nothing was heard from it for its lease: its place is given away.
// It may join again, as a new attendee, once its workers are gone.
struct Evicted {
  std::string sentence;
};

// Somebody wants to read what workers of this node print in `round`, or have printed: the agent
// brings it to `delivery` (RendezvousClient::DeliverLog).
struct LogWanted {
  std::uint64_t delivery = 0;
  RoundId round;
  // Only ranks that the node had then.
  std::vector<RankRange> ranks;
  LogExtent extent;
};

// Answers AskToLeave.
struct LeaveAnswer {
  // The job goes on without this node: it stops its workers and says goodbye, whatever the round.
  bool may_leave = false;
  // Otherwise why it has to stay, to complete "this node stays in the job: ...".
  std::string why_not;
};

// An Assignment starts the workers; a Verdict ends the job.
using Directive = std::variant<Welcome, Waiting, Assignment, Stop, Fenced, Verdict, Refused, Notice,
                               Heard, Evicted, LogWanted, LeaveAnswer>;

// A directive with its addressee. What is said to many is one value that they share: a job may have
// ten thousand nodes, and what it says to them is passed on several times.
struct Outgoing {
  Outgoing(AgentId addressee, std::shared_ptr<const Directive> said)
      : to(addressee), shared(std::move(said)) {}
  Outgoing(AgentId addressee, Directive said)
      : Outgoing(addressee, std::make_shared<const Directive>(std::move(said))) {}

  const Directive& directive() const { return *shared; }

  AgentId to = 0;
  std::shared_ptr<const Directive> shared;
};

// Something that happened to a job, for the log: told once, by the place that made it happen.
struct Transition {
  std::string run_id;
  RoundNumber round = kNoRound;
  std::string node;  // id of the node it is about, or empty
  std::string text;
  // If it is one of the turns that figures are made of.
  std::variant<std::monostate, RoundStarted, RoundRuns, RoundOver, JobEnded> milestone{};
};

// What a call of the Coordinator brought about, in order.
struct Outbox {
  std::vector<Outgoing> directives;
  std::vector<Transition> transitions;
  // Run ids of jobs in which something has changed that must be remembered (JobRecord).
  std::set<std::string> changed_jobs;
  // Run ids of jobs that no longer exist, nor do their stores.
  std::vector<std::string> forgotten_jobs;

  bool empty() const {
    return directives.empty() && transitions.empty() && changed_jobs.empty() &&
           forgotten_jobs.empty();
  }
};

}  // namespace muster::rendezvous
