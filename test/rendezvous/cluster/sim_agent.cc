#include "test/rendezvous/cluster/sim_agent.h"

#include <csignal>
#include <utility>
#include <variant>

namespace muster::rendezvous {

SimAgent::SimAgent(World world, Options options, FakeGuard& guard, std::function<void()> on_ended)
    : world_(world),
      options_(std::move(options)),
      guard_(guard),
      on_ended_(std::move(on_ended)),
      process_(std::make_shared<Process>(world.scheduler, world.random)),
      attendance_(world, options_.host, process_, options_.clock_offset,
                  [this](const Attendance::Action& action) { OnAction(action); }) {}

void SimAgent::Begin() {
  guard_.SetDeadline(std::nullopt);
  Perform(policy_.Begin());
}

void SimAgent::Terminate() {
  process_->Do([this] { Perform(policy_.OnSignal(SIGTERM)); });
}

void SimAgent::OnAction(const Attendance::Action& action) {
  if (const auto* tell = std::get_if<Attendance::Tell>(&action))
    return OnDirective(tell->directive);
  if (const auto* lost = std::get_if<Attendance::Lost>(&action)) return OnLost(lost->status);
  if (std::holds_alternative<Attendance::Left>(action)) return Perform(policy_.OnGoodbyeHeard());
  if (options_.mutations.does_not_fence) return;
  if (const auto* deadline = std::get_if<Attendance::Deadline>(&action)) OnDeadline(deadline->time);
  if (const auto* fenced = std::get_if<Attendance::Fenced>(&action)) OnFenced(fenced->why);
}

void SimAgent::OnDirective(const Directive& directive) {
  world_.Log(node_id(), " hears ", directive.index());
  if (const auto* welcome = std::get_if<Welcome>(&directive)) incarnation_ = welcome->incarnation;
  if (const auto* verdict = std::get_if<Verdict>(&directive)) {
    world_.checks.rounds.OnVerdict(options_.request.run_id, incarnation_, *verdict,
                                   options_.request.settings.max_restarts);
  }
  if (const auto* waiting = std::get_if<Waiting>(&directive); waiting && waiting->spare) {
    world_.incidents.Count(Incident::kSpare);
  }
  Perform(policy_.OnDirective(directive));
}

void SimAgent::OnDeadline(std::optional<TimePoint> deadline) {
  if (deadline) *deadline -= options_.clock_offset;
  if (!deadline) world_.checks.rounds.OnPlaceKept(node_id());
  guard_.SetDeadline(deadline);
}

void SimAgent::OnFenced(const std::string& why) {
  world_.Log(node_id(), " is fenced");
  Perform(policy_.OnFenced(why));
}

void SimAgent::OnLost(const absl::Status& status) {
  world_.Log(node_id(), " gives up");
  lost_ = true;
  Perform(policy_.OnLost(status));
}

void SimAgent::Perform(const launcher::Actions& actions) {
  struct Do {
    SimAgent& agent;

    void operator()(const launcher::JoinRound& join) const {
      JoinRequest request = agent.options_.request;
      request.after = join.after.number;
      request.ran_in = join.after.incarnation;
      agent.attendance_.Join(request);
    }
    void operator()(const launcher::StartWorkers& start) const {
      agent.StartWorkers(start.assignment);
    }
    void operator()(const launcher::StopWorkers&) const {
      if (agent.workers_ != nullptr) agent.workers_->Stop();
    }
    void operator()(const launcher::KillWorkers&) const {
      if (agent.workers_ != nullptr) agent.workers_->Kill();
    }
    void operator()(const launcher::ReportStarted& report) const {
      agent.attendance_.Say(WorkersStarted{report.round});
    }
    void operator()(const launcher::ReportExited& report) const {
      agent.attendance_.Say(WorkersExited{report.round, report.outcome});
    }
    void operator()(const launcher::SayLeaving& leaving) const {
      agent.attendance_.Say(Leaving{leaving.reason});
    }
    void operator()(const launcher::SayGoodbye& goodbye) const {
      agent.attendance_.Leave(goodbye.reason);
    }
    void operator()(const launcher::Finish&) const {
      agent.CheckResult();
      agent.on_ended_();
    }
    void operator()(const launcher::Tell&) const {}
  };
  for (const launcher::Action& action : actions) std::visit(Do{*this}, action);
}

void SimAgent::StartWorkers(const Assignment& assignment) {
  world_.checks.rounds.OnAssignment(node_id(), assignment);
  workers_ = std::make_shared<FakeWorkers>(
      world_, node_id(), assignment, options_.habits, process_,
      FakeWorkers::Events{
          .on_started = [this] { Perform(policy_.OnWorkersStarted()); },
          .on_first_failure =
              [this](const WorkerFailure& failure) { Perform(policy_.OnFirstFailure(failure)); },
          .on_lost_touch = [this, assignment] { OnLostTouch(assignment); },
          .on_gone = [this](bool succeeded) { Perform(policy_.OnWorkersGone(succeeded)); }});
  workers_->Start();
  guard_.Watch(workers_, attendance_.session());
}

// What the guard has killed must not be taken for a failure.
void SimAgent::OnLostTouch(const Assignment& assignment) {
  if (!options_.mutations.reports_what_the_guard_killed) {
    return OnFenced("the workers' time without a rendezvous is over");
  }
  Perform(policy_.OnFirstFailure({.rank = assignment.base_rank, .host = node_id(), .signal = 9}));
}

// Nobody is sent away without cause.
void SimAgent::CheckResult() {
  if (!policy_.result() || lost_) return;
  const auto* failed = std::get_if<launcher::RendezvousFailed>(&*policy_.result());
  if (failed == nullptr) return;
  const std::string why(failed->status.message());
  // True when the node was silent too long: the job has ended without it, or goes on.
  if (why.find("how the job ended is not known") != std::string::npos) return;
  world_.checks.violations.Add(Check::kTurnedAway, absl::StrCat(node_id(), ": ", why));
}

}  // namespace muster::rendezvous
