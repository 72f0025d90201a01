// All that an agent decides: the agent without its loop, its processes and its network.
//
// AgentPolicy says what follows from the rendezvous' word; around it stand here what this node
// knows by itself: whether it is fit to take part (fitness.h), until when its workers may live, and
// what its user and the event log are told.
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

// What the core asks its Agent to do beyond AgentPolicy's actions, in order. An AgentEvent is to be
// told to whoever watches, a RunState, too; AskForPlace is a Join.

// Run the user's health check, in place of one that may run still. Answered with OnHealth().
struct CheckHealth {};
// The health check that runs is not wanted any more, and gives no answer.
struct DropHealthCheck {};
// The workers, if they run, must not outlive this time even if the agent stands still: for their
// guard (WorkerGroup::SetDeadline). Nothing: they may. For those that are started later it is
// AgentCore::deadline().
struct GuardWorkers {
  std::optional<rendezvous::TimePoint> deadline;
};

using CoreAction = std::variant<CheckHealth, DropHealthCheck, AskForPlace, GuardWorkers,
                                StartWorkers, StopWorkers, KillWorkers, ReportStarted, ReportExited,
                                SayLeaving, SayGoodbye, Finish, Tell, RunState, AgentEvent>;
using CoreActions = std::vector<CoreAction>;

// Deterministic: time comes in. What happens to an agent is told to it, whether or not it changes
// anything; see AgentPolicy for what the events mean.
class AgentCore {
 public:
  // `grace` is what workers have from the signal to stop until SIGKILL, milliseconds::max() for
  // ever: what the user is told of it, as the Agent sees to it.
  AgentCore(Fitness::HealthCheck check, std::chrono::milliseconds grace)
      : grace_(grace), fitness_(check) {}

  CoreActions Begin();

  CoreActions OnDirective(const rendezvous::Directive& directive, rendezvous::TimePoint now);
  // The workers must not outlive this time; nothing: they may. A start that comes later than that
  // starts nobody.
  CoreActions OnDeadline(std::optional<rendezvous::TimePoint> deadline);
  CoreActions OnFenced(const std::string& why);
  CoreActions OnLost(const absl::Status& status);

  // OK: the node is fit. Else the message says why not.
  CoreActions OnHealth(const absl::Status& status);
  // AskForPlace or StartWorkers cannot be carried out, and another attempt would end the same way.
  CoreActions OnCannotStart(const absl::Status& status);
  CoreActions OnWorkersStarted();
  CoreActions OnFirstFailure(const rendezvous::WorkerFailure& failure);
  // The first worker to fail was killed by the guard, as the deadline had come
  // (FailureRecord::lost_touch): the guard was faster than the agent, or the agent stood still. It
  // is no failure of the worker's.
  CoreActions OnLostTouch();
  // Every worker of StartWorkers is gone or given up.
  CoreActions OnWorkersGone(const worker::GroupResult& result);

  CoreActions OnSignal(int signal);
  CoreActions OnGoodbyeHeard();

  // How the run ended; set when Finish is asked for.
  const std::optional<RunResult>& result() const { return policy_.result(); }
  // The one that OnDeadline named last.
  std::optional<rendezvous::TimePoint> deadline() const { return deadline_; }
  // The last round that this node was given a place in.
  rendezvous::RoundNumber round() const { return round_; }

 private:
  // What the user is told of a signal; `asked` is what the policy makes of it.
  std::string DescribeSignal(const std::string& name, const Actions& asked) const;
  // Turns what the policy asks for into what the agent has to do.
  void Add(const Actions& asked, CoreActions& actions);
  void AddJoin(const JoinRound& join, CoreActions& actions);
  AgentEvent EventOfRound(AgentEventKind kind, std::string cause) const;
  std::optional<AgentEvent> EventOf(const rendezvous::Directive& directive) const;

  const std::chrono::milliseconds grace_;

  AgentPolicy policy_;
  Fitness fitness_;
  // The workers have been given the time to end by themselves.
  bool workers_have_grace_ = false;
  std::optional<rendezvous::TimePoint> deadline_;
  rendezvous::RoundNumber round_ = rendezvous::kNoRound;
};

}  // namespace muster::launcher
