// What an agent does about what happens: the agent without its loop, its processes and its network.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "launcher/run_result.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// What the policy asks its Agent to do, in order.
struct JoinRound {};
struct StartWorkers {
  rendezvous::Assignment assignment;
};
// End the workers by the stop ladder, beginning with `signal`.
struct StopWorkers {
  int signal = 0;
};
struct KillWorkers {};
struct ReportStarted {
  rendezvous::RoundNumber round = 0;
};
struct ReportExited {
  rendezvous::RoundNumber round = 0;
  rendezvous::WorkersOutcome outcome;
};
struct SayLeaving {
  std::string reason;
};
// Say goodbye; the run is over once that is heard.
struct SayGoodbye {
  std::string reason;
};
// The run is over.
struct Finish {};
// Something the user should know, in one sentence. Notices are for those who want to watch.
struct Tell {
  enum Level { kNotice, kWarning } level = kNotice;
  std::string sentence;
};

using Action = std::variant<JoinRound, StartWorkers, StopWorkers, KillWorkers, ReportStarted,
                            ReportExited, SayLeaving, SayGoodbye, Finish, Tell>;
using Actions = std::vector<Action>;

// The states, and what moves them:
//
//   joining --Assignment--> running --all exited with 0--> waiting (for the other nodes)
//      ^                       |                              |
//      |                       +-- Stop, Verdict, signal, a failure, the rendezvous is lost
//      |                       v                              |
//      +----- Stop ------- stopping: the workers end <--------+ (Stop: nothing to end, joins at
//      once)
//                              |
//                              +-- Verdict or signal --> leaving --> Finish
//
// A worker's failure is reported at once, while the group ends the other workers; what follows,
// another round or the end, the rendezvous says. Whatever ends the run, the goodbye comes after the
// last worker: until then this node's ranks are not given away.
//
// Deterministic, and called on the loop's thread only.
class AgentPolicy {
 public:
  Actions Begin();

  Actions OnDirective(const rendezvous::Directive& directive);
  // The rendezvous cannot be reached, or is gone.
  Actions OnLost(const absl::Status& status);

  // Every worker of StartWorkers has been started.
  Actions OnWorkersStarted();
  // The first worker failed; the others are being stopped.
  Actions OnFirstFailure(const rendezvous::WorkerFailure& failure);
  // Every worker is gone. `succeeded`: all exited with 0, unasked.
  Actions OnWorkersGone(bool succeeded);
  // This node cannot start its workers, and another attempt would end the same way.
  Actions OnCannotStart(const absl::Status& status);

  // SIGTERM, SIGINT, SIGHUP or SIGQUIT came to the agent. The first stops the workers with that
  // same signal, one more kills them.
  Actions OnSignal(int signal);

  // The goodbye was heard.
  Actions OnGoodbyeHeard();

  // How the run ended; set when Finish is asked for.
  const std::optional<RunResult>& result() const { return result_; }

 private:
  enum class State { kJoining, kRunning, kWaiting, kStopping, kLeaving, kFinished };
  // What comes after the workers have ended.
  enum class Next { kUndecided, kJoin, kLeave };

  // Each reads one kind of directive.
  Actions Handle(const rendezvous::Welcome& welcome);
  Actions Handle(const rendezvous::Waiting& waiting);
  Actions Handle(const rendezvous::Assignment& assignment);
  Actions Handle(const rendezvous::Stop& stop);
  Actions Handle(const rendezvous::Fenced& fenced);
  Actions Handle(const rendezvous::Verdict& verdict);
  Actions Handle(const rendezvous::Refused& refused);
  Actions Handle(const rendezvous::Notice& notice);

  // The run ends with `result`, unless something has ended it before; workers that run are stopped
  // first.
  Actions End(RunResult result, int signal);
  Actions Proceed();
  bool WorkersRun() const { return state_ == State::kRunning || state_ == State::kStopping; }

  State state_ = State::kJoining;
  Next next_ = Next::kUndecided;
  rendezvous::RoundNumber round_ = rendezvous::kNoRound;
  bool rendezvous_lost_ = false;
  std::optional<RunResult> result_;
};

}  // namespace muster::launcher
