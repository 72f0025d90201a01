// What agents say to the Coordinator: the values that enter the core. The mirror of Directive.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "rendezvous/core/progress.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// An agent comes back over a new connection, after the old one broke or the daemon was restarted.
// Answered with Welcome and what it has to do now; with Evicted when no such session attends, after
// which it may Join as another; or with Refused over the older of two connections.
struct Resume {
  SessionToken session;
  // Which of the session's connections this is: a later one has a greater number.
  std::uint64_t connection = 0;
  SpokenVersions speaks{};

  bool operator==(const Resume&) const = default;
};

// A sign of life, answered with Heard. Every other event is a sign of life, too.
struct KeepAlive {
  std::int64_t number = 0;
  // The last keep-alive to which the agent has heard an answer; 0: none. However late this one
  // arrives, the agent was alive after that answer was sent.
  std::int64_t heard = 0;
  // Bytes of its workers' output that log files did not take, since the agent began.
  std::uint64_t log_bytes_lost = 0;
  // What this node's ranks have told since the one before; after a new connection all of it. It
  // changes nothing if it is of a round that is over.
  Progress progress{};

  bool operator==(const KeepAlive&) const = default;
};

// All of this node's workers in `round` have called exec.
struct WorkersStarted {
  RoundId round;

  bool operator==(const WorkersStarted&) const = default;
};

// All of them have ended with 0, or one has failed.
struct WorkersExited {
  RoundId round;
  WorkersOutcome outcome;
  // How long ago the worker failed, by its agent's clock, when this was sent. What it took to get
  // here nobody can know.
  Duration failed_ago{};

  bool operator==(const WorkersExited&) const = default;
};

// The agent will leave once its workers are gone: the others stop now, the next round waits for it.
struct Leaving {
  std::string reason;

  bool operator==(const Leaving&) const = default;
};

// The agent wants to leave, as its scheduler drains its node, if the job can go on without it.
// Answered with LeaveAnswer; once that says yes it is as if the agent had said Leaving. Only where
// kLeaveAnswers is spoken: elsewhere an agent decides for itself.
struct AskToLeave {
  // The last round in which it had workers, if it had any.
  RoundId round;
  // "Slurm drains it (bad fan)".
  std::string reason;

  bool operator==(const AskToLeave&) const = default;
};

// The agent leaves; its workers are gone. An empty reason need not be reported. The last event.
struct Goodbye {
  std::string reason;

  bool operator==(const Goodbye&) const = default;
};

// A JoinRequest opens the attendance (answered with Welcome or Refused), or asks for the round
// after the one that the agent was told to stop.
using Event = std::variant<JoinRequest, Resume, KeepAlive, WorkersStarted, WorkersExited, Leaving,
                           AskToLeave, Goodbye>;

}  // namespace muster::rendezvous
