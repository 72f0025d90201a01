// Everything an agent decides: the agent without its loop, its processes and its network.
//
// AgentPolicy says what follows from the rendezvous' word. This class adds what the node knows by
// itself: whether it is fit to take part (fitness.h), until when its workers may live, and what its
// user and the event log are told.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "launcher/agent/agent_policy.h"
#include "launcher/agent/fitness.h"
#include "launcher/registry/run_state.h"
#include "launcher/report/agent_event.h"
#include "launcher/report/run_result.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/types.h"
#include "worker/group/group_result.h"

namespace muster::launcher {

// What the core asks its Agent to do beyond AgentPolicy's actions, in order. AgentEvent and
// RunState are for the AgentObserver; AskForPlace is a Join.

// Run the user's health check, replacing one that may still be running. Answered with OnHealth().
struct CheckHealth {};
// The running health check is no longer wanted, and gives no answer.
struct DropHealthCheck {};
// Workers that are running must not outlive this time, even if the agent stands still: their guard
// enforces it (WorkerGroup::SetDeadline). nullopt: there is no limit. For workers that are started
// later the limit is AgentCore::deadline().
struct GuardWorkers {
  std::optional<rendezvous::TimePoint> deadline;
};

// What a node of the job needs to know to leave it early.
struct JobNeeds {
  int min_nodes = 1;
  int max_nodes = 1;
  // The rendezvous is served by this process: if it leaves, the job ends.
  bool serves_rendezvous = false;
};

using CoreAction =
    std::variant<CheckHealth, DropHealthCheck, AskForPlace, GuardWorkers, StartWorkers, StopWorkers,
                 KillWorkers, ReportStarted, ReportExited, SayLeaving, AskToLeave, SayGoodbye,
                 Finish, Tell, RunState, AgentEvent>;
using CoreActions = std::vector<CoreAction>;

// Deterministic: time comes in. It is told everything that happens to the agent, whether or not
// that changes anything; AgentPolicy explains the events.
class AgentCore {
 public:
  // `grace` is the time from the workers' stop signal to SIGKILL; milliseconds::max(): for ever. It
  // is only for what the user is told; the Agent enforces it. So is whether a SIGTERM that is
  // repeated is no second signal, as in Slurm's jobs (signals.h).
  AgentCore(Fitness::HealthCheck check, std::chrono::milliseconds grace, JobNeeds needs = {},
            bool sigterm_counts_once = false)
      : grace_(grace), sigterm_counts_once_(sigterm_counts_once), needs_(needs), fitness_(check) {}

  CoreActions Begin();

  CoreActions OnDirective(const rendezvous::Directive& directive, rendezvous::TimePoint now);
  // The workers must not outlive this time; nullopt: there is no limit. After that time no worker
  // is started.
  CoreActions OnDeadline(std::optional<rendezvous::TimePoint> deadline);
  CoreActions OnFenced(const std::string& why);
  CoreActions OnLost(const absl::Status& status);

  // OK: the node is fit. Otherwise the message says why not.
  CoreActions OnHealth(const absl::Status& status);
  // AskForPlace or StartWorkers cannot be carried out, and another attempt would end the same way.
  CoreActions OnCannotStart(const absl::Status& status);
  CoreActions OnWorkersStarted();
  CoreActions OnFirstFailure(const rendezvous::WorkerFailure& failure);
  // The first worker to fail was killed by the guard at the deadline (FailureRecord::lost_touch):
  // the guard was faster than the agent, or the agent stood still. The worker itself did not fail.
  CoreActions OnLostTouch();
  // Every worker of StartWorkers is gone or given up.
  CoreActions OnWorkersGone(const worker::GroupResult& result);

  CoreActions OnSignal(int signal);
  // The scheduler drains this node; `why` is about the node: "Slurm drains it (bad fan)". To be
  // told again and again as long as that is so: each time, if its workers run or it waits for a
  // place, the rendezvous is asked whether the job can spare this node, and only the user is told
  // once why it stays. Beside a rendezvous that does not answer that (kLeaveAnswers) each node
  // whose workers run decides for itself.
  CoreActions OnDrained(const std::string& why);
  CoreActions OnGoodbyeHeard();

  // How the run ended; set when Finish is asked for.
  const std::optional<RunResult>& result() const { return policy_.result(); }
  // The deadline that OnDeadline named last.
  std::optional<rendezvous::TimePoint> deadline() const { return deadline_; }
  // The last round in which this node was given a place.
  rendezvous::RoundNumber round() const { return round_; }

 private:
  // As far as this node knows: why the job cannot go on without it; empty: it can.
  std::string WhyItStays() const;
  CoreActions OnLeaveAnswer(const rendezvous::LeaveAnswer& answer);
  CoreActions Stay(const std::string& why_not);
  CoreActions LeaveEarly();
  // "the workers have 30 s to stop".
  std::string GraceInWords() const;
  // What the user is told of a signal; `asked` is what the policy makes of it.
  std::string DescribeSignal(int signal, const Actions& asked) const;
  // Turns what the policy asks for into actions for the agent.
  void Add(const Actions& asked, CoreActions& actions);
  void AddJoin(const JoinRound& join, CoreActions& actions);
  static AgentEvent EventOfPlace(const rendezvous::Assignment& assignment);
  AgentEvent EventOfRound(AgentEventKind kind, std::string cause) const;
  std::optional<AgentEvent> EventOf(const rendezvous::Directive& directive) const;

  const std::chrono::milliseconds grace_;
  const bool sigterm_counts_once_;
  const JobNeeds needs_;

  AgentPolicy policy_;
  Fitness fitness_;
  // The workers have been given the time to end by themselves.
  bool workers_have_grace_ = false;
  std::optional<rendezvous::TimePoint> deadline_;
  rendezvous::RoundNumber round_ = rendezvous::kNoRound;
  // Nodes of that round.
  int nodes_ = 1;
  // Of the protocol, as this node and the rendezvous speak it.
  int version_ = 1;
  // Why this node is drained, as was told last.
  std::string drained_;
  // The user knows why the node stays.
  bool told_it_stays_ = false;
};

}  // namespace muster::launcher
