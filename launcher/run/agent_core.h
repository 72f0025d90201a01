// Everything an agent decides: the agent without its loop, its processes and its network.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"

#include "launcher/replay/agent_event.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/types.h"
#include "worker/group/group_life.h"

namespace muster::launcher {

// How a run ended for this agent: what the agent hands to report.h.

// The rendezvous could not be served or reached, or ended without a verdict.
struct RendezvousFailed {
  absl::Status status;
};

// This node cannot start its workers: something is wrong with their log directory or port.
struct NodeFailed {
  absl::Status status;
};

// A signal to this agent ended the run here, before any verdict.
struct Interrupted {
  int signal = 0;
};

// This node has left a job that goes on without it. `why` is about the node: "Slurm drains it".
struct LeftEarly {
  std::string why;
};

// A Verdict is the job's end, the same on every node.
using RunResult =
    std::variant<rendezvous::Verdict, RendezvousFailed, NodeFailed, Interrupted, LeftEarly>;

// What an AgentCore decides is done here: by the Agent, and in tests by one that is simulated. A
// method may call the core from inside: the core has changed its state before it calls.
class AgentPort {
 public:
  virtual ~AgentPort() = default;

  // Runs the user's health check, in place of one that may still be running. Answered with
  // OnHealth().
  virtual void CheckHealth() = 0;
  // Asks for a place in the round after `after`, which is the last in which this node had workers
  // or was about to start them. `unfit` says why this node cannot take part; empty: it can.
  virtual void Join(rendezvous::RoundId after, const std::string& unfit) = 0;
  // Says WorkersStarted, WorkersExited, Leaving or AskToLeave to the rendezvous.
  virtual void Say(rendezvous::Event event) = 0;
  // Says goodbye. Answered with OnGoodbyeHeard(). A health check that still runs is dropped.
  virtual void Leave(const std::string& reason) = 0;

  // No worker runs. Its deadline is AgentCore::deadline().
  virtual void StartWorkers(const rendezvous::Assignment& assignment) = 0;
  // Ends the workers by the stop ladder, whose first rung is `signal`; SIGKILL: at once.
  virtual void StopWorkers(int signal) = 0;

  // The run is over. A health check that still runs is dropped.
  virtual void Finish(const RunResult& result) = 0;

  // Something the user should know, in one sentence. Notices are for those who want to watch.
  enum class Level { kNotice, kWarning };
  virtual void Tell(Level level, const std::string& sentence) = 0;
  // For the event log.
  virtual void Note(const AgentEvent& event) = 0;
};

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
// If the user wants a health check, it runs before each Join, and its failure says why the node is
// not fit; before the next round the node may be fit again. A worker that SIGKILL does not end
// makes the node unfit for good, as it keeps the node's devices, and there is nothing left to
// check. An unfit node asks for a place all the same: the rendezvous makes it wait.
//
// After its connection broke, an agent is told again what it has to do; what it knows already
// changes nothing.
//
// Deterministic: time comes in. It is told everything that happens to the agent, whether or not
// that changes anything, on the loop's thread only.
class AgentCore {
 public:
  struct Options {
    bool checks_health = false;
    // From the workers' stop signal to SIGKILL; milliseconds::max(): never. Only for what the user
    // is told: the port enforces it.
    std::chrono::milliseconds grace{};
    // A SIGTERM that is repeated is no second signal, as in Slurm's jobs (interruptions.h). Only
    // for what the user is told.
    bool sigterm_counts_once = false;
    // Of the job.
    int min_nodes = 1;
    int max_nodes = 1;
    // The rendezvous is served by this process: if it leaves, the job ends.
    bool serves_rendezvous = false;
  };

  // `port` must outlive the core.
  AgentCore(AgentPort& port, const Options& options) : port_(port), options_(options) {}

  void Begin() { Join(); }

  void OnDirective(const rendezvous::Directive& directive, rendezvous::TimePoint now);
  // The workers must not outlive this time; nullopt: there is no limit. After that time no worker
  // is started; those that run the port has to guard (WorkerGroup::SetDeadline).
  void OnDeadline(std::optional<rendezvous::TimePoint> deadline) { deadline_ = deadline; }
  // Nothing was heard from the rendezvous for so long that it may give this node's place away;
  // `why` says for how long and for what reason. It may be heard from again.
  void OnFenced(const std::string& why);
  // The rendezvous cannot be reached, or is gone.
  void OnLost(const absl::Status& status);
  // The goodbye was heard.
  void OnGoodbyeHeard();

  // OK: the node is fit. Otherwise the message says why not.
  void OnHealth(const absl::Status& status);
  // Join or StartWorkers cannot be carried out, and another attempt would end the same way.
  void OnCannotStart(const absl::Status& status);
  // Every worker of StartWorkers has been started.
  void OnWorkersStarted();
  // The first worker failed; the others are being stopped.
  void OnFirstFailure(const rendezvous::WorkerFailure& failure);
  // The first worker to fail was killed by the guard at the deadline (FailureRecord::lost_touch):
  // the guard was faster than the agent, or the agent stood still. The worker itself did not fail.
  void OnLostTouch();
  // Every worker of StartWorkers is gone or given up.
  void OnWorkersGone(const worker::GroupResult& result);

  // SIGTERM, SIGINT, SIGHUP or SIGQUIT came to the agent. The first stops the workers with that
  // same signal, the second kills them.
  void OnSignal(int signal);
  // The scheduler wants this node back: `why` is about the node, "Slurm drains it (bad fan)". To be
  // called repeatedly as long as that is so: each time, if its workers run or it waits for a place,
  // the rendezvous is asked whether the job can spare this node, and why it stays is told once.
  // Where the rendezvous does not answer that (kLeaveAnswers), or is served here, a node whose
  // workers run decides for itself.
  void OnDrained(const std::string& why);

  // How the run ended or is about to end, once that is known.
  const std::optional<RunResult>& result() const { return result_; }
  // What OnDeadline said last.
  std::optional<rendezvous::TimePoint> deadline() const { return deadline_; }
  // The last round in which this node was given a place.
  rendezvous::RoundNumber round() const { return round_.number; }

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
  void Handle(const rendezvous::Welcome& welcome, rendezvous::TimePoint now);
  void Handle(const rendezvous::Waiting& waiting, rendezvous::TimePoint now);
  void Handle(const rendezvous::Assignment& assignment, rendezvous::TimePoint now);
  void Handle(const rendezvous::Stop& stop, rendezvous::TimePoint now);
  void Handle(const rendezvous::Fenced& fenced, rendezvous::TimePoint now);
  void Handle(const rendezvous::Verdict& verdict, rendezvous::TimePoint now);
  void Handle(const rendezvous::Refused& refused, rendezvous::TimePoint now);
  void Handle(const rendezvous::Notice& notice, rendezvous::TimePoint now);
  void Handle(const rendezvous::Evicted& evicted, rendezvous::TimePoint now);
  void Handle(const rendezvous::LeaveAnswer& answer, rendezvous::TimePoint now);
  // They change nothing for the run.
  void Handle(const rendezvous::Heard&, rendezvous::TimePoint) {}
  void Handle(const rendezvous::LogWanted&, rendezvous::TimePoint) {}

  void Join();
  void StopWorkers(int signal);
  // Kills whatever is running of the round's workers, and this node rejoins.
  void KillAndRejoin(const std::string& why);
  // The run ends with `result`, unless something else has ended it already, and in the way `next`
  // says; running workers are stopped first.
  void End(RunResult result, Next next, int signal);
  // Once no worker is left: what comes next, if that is known.
  void Proceed();
  void Finish();
  void Stay(const std::string& why_not);
  void LeaveEarly();

  // Between StartWorkers and OnWorkersGone, or the event that is reported in its place.
  bool workers_run() const { return state_ == State::kRunning || state_ == State::kStopping; }
  bool run_ends() const { return next_ == Next::kLeave || next_ == Next::kQuit; }
  bool leaves_early() const { return result_ && std::holds_alternative<LeftEarly>(*result_); }

  // "the workers have 30 s to stop".
  std::string GraceInWords() const;
  // What the user is told of a signal before it changes anything.
  std::string DescribeSignal(int signal) const;
  void Warn(const std::string& sentence) { port_.Tell(AgentPort::Level::kWarning, sentence); }
  void NoteOfRound(AgentEventKind kind, std::string cause);

  AgentPort& port_;
  const Options options_;

  State state_ = State::kJoining;
  Next next_ = Next::kUndecided;
  // The last one in which this node was given a place, and its nodes.
  rendezvous::RoundId round_;
  int nodes_ = 1;
  std::optional<RunResult> result_;
  std::optional<rendezvous::TimePoint> deadline_;
  // While a health check runs: for the Join after which round.
  std::optional<rendezvous::RoundId> checking_after_;
  // Why this node can never take part again; empty: it can.
  std::string unfit_;
  // The workers have been given the time to end by themselves.
  bool workers_have_grace_ = false;
  // Of the protocol, as this node and the rendezvous speak it.
  int version_ = 1;
  // Why this node is drained, as was told last.
  std::string drained_;
  // The user knows why the node stays.
  bool told_it_stays_ = false;
};

}  // namespace muster::launcher
