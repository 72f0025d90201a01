// How an agent reacts to events: the agent without its loop, its processes and its network.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "launcher/report/run_result.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"

namespace muster::launcher {

// What the policy asks its Agent to do, in order.
struct JoinRound {
  // The last round in which this node had workers, or was about to start them.
  rendezvous::RoundId after;
};
struct StartWorkers {
  rendezvous::Assignment assignment;
};
// End the workers by the stop ladder, whose first rung is `signal`.
struct StopWorkers {
  int signal = 0;
};
struct KillWorkers {};
struct ReportStarted {
  rendezvous::RoundId round;
};
struct ReportExited {
  rendezvous::RoundId round;
  rendezvous::WorkersOutcome outcome;
};
struct SayLeaving {
  std::string reason;
};
// Ask the rendezvous whether the job can go on without this node.
struct AskToLeave {
  // The one that runs here.
  rendezvous::RoundId round;
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
                            ReportExited, SayLeaving, AskToLeave, SayGoodbye, Finish, Tell>;
using Actions = std::vector<Action>;

// The states, and what moves them:
//
//   joining --Assignment--> running ------ all exited with 0 ------> done (others may still run)
//                              |                                       |
//                              | Stop, Verdict, a signal, a failure,   |
//                              | the rendezvous is lost                |
//                              v                                       |
//                           stopping --none is left--> failed          |
//                                                        |             |
//   joining <------------------ Stop --------------------+-------------+
//   leaving --> finished <----- Verdict, a signal -------+-------------+
//
// A worker's failure is reported at once, while the group ends the other workers; the rendezvous
// says what follows, another round or the end. Whatever ends the run, the goodbye comes after the
// last worker has ended: until then this node's ranks are not given away. When the node must assume
// that they are (OnFenced, Evicted), the workers are killed at once, and this node rejoins.
//
// After its connection broke, an agent is told again what it has to do; what it knows already
// changes nothing.
//
// Deterministic, and called on the loop's thread only.
class AgentPolicy {
 public:
  Actions Begin();

  Actions OnDirective(const rendezvous::Directive& directive);
  // The rendezvous cannot be reached, or is gone.
  Actions OnLost(const absl::Status& status);
  // Nothing was heard from the rendezvous for so long that it may give this node's place away;
  // `why` says for how long and for what reason. It may be heard from again.
  Actions OnFenced(const std::string& why);

  // StartWorkers came so late that this node's place may have been given away. No worker was
  // started; `why` says what had happened.
  Actions OnStartTooLate(const std::string& why);
  // Every worker of StartWorkers has been started.
  Actions OnWorkersStarted();
  // The first worker failed; the others are being stopped.
  Actions OnFirstFailure(const rendezvous::WorkerFailure& failure);
  // Every worker is gone. `succeeded`: all exited with 0, unasked.
  Actions OnWorkersGone(bool succeeded);
  // This node cannot start its workers, and another attempt would end the same way.
  Actions OnCannotStart(const absl::Status& status);

  // SIGTERM, SIGINT, SIGHUP or SIGQUIT came to the agent. The first stops the workers with that
  // same signal, the second kills them.
  Actions OnSignal(int signal);

  // The scheduler wants this node back. `why` is told to the others: "Slurm drains it". Nothing but
  // in a round whose workers run, or while it waits for one.
  Actions OnDrained(const std::string& why);
  // The others go on without it: its workers are stopped, and it leaves.
  Actions OnMayLeave(const std::string& why);

  // The goodbye was heard.
  Actions OnGoodbyeHeard();

  // How the run ended; set when Finish is asked for.
  const std::optional<RunResult>& result() const { return result_; }

  // As workers_run(), and nothing has asked them to end.
  bool is_undisturbed() const { return state_ == State::kRunning; }

  // Between StartWorkers and OnWorkersGone, or the event that is reported in its place.
  bool workers_run() const { return state_ == State::kRunning || state_ == State::kStopping; }

 private:
  enum class State {
    kJoining,
    kRunning,
    kStopping,
    kDone,    // every worker has exited with 0; the rendezvous says when all the others have
    kFailed,  // no worker is left, and not all succeeded; the rendezvous says what follows
    kLeaving,
    kFinished,
  };
  // What to do after the workers have ended.
  enum class Next {
    kUndecided,
    kJoin,
    kLeave,
    kQuit,  // leave without a goodbye, as nobody would hear it
  };

  // One for each kind of directive.
  Actions Handle(const rendezvous::Welcome& welcome);
  Actions Handle(const rendezvous::Waiting& waiting);
  Actions Handle(const rendezvous::Assignment& assignment);
  Actions Handle(const rendezvous::Stop& stop);
  Actions Handle(const rendezvous::Fenced& fenced);
  Actions Handle(const rendezvous::Verdict& verdict);
  Actions Handle(const rendezvous::Refused& refused);
  Actions Handle(const rendezvous::Notice& notice);
  Actions Handle(const rendezvous::Heard& heard);
  Actions Handle(const rendezvous::Evicted& evicted);
  // It changes nothing for the run.
  Actions Handle(const rendezvous::LogWanted&) { return {}; }
  // AgentCore knows what was asked (OnMayLeave).
  Actions Handle(const rendezvous::LeaveAnswer&) { return {}; }

  // Kills whatever is running of the round's workers, and this node rejoins.
  Actions KillAndRejoin(const std::string& why);

  // The run ends with `result`, unless something else has ended it already, and in the way `next`
  // says; running workers are stopped first.
  Actions End(RunResult result, Next next, int signal);
  Actions Proceed();
  bool run_ends() const { return next_ == Next::kLeave || next_ == Next::kQuit; }

  State state_ = State::kJoining;
  Next next_ = Next::kUndecided;
  rendezvous::RoundId round_;
  std::optional<RunResult> result_;
};

}  // namespace muster::launcher
