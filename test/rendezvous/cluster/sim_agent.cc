#include "test/rendezvous/cluster/sim_agent.h"

#include <csignal>
#include <utility>
#include <variant>

#include "absl/strings/match.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLongestCheck = milliseconds(400);
// What the user allows a health check, as launcher/ has it; worker/group/health_check.h ends one
// then.
constexpr Duration kCheckTimeout = seconds(10);

}  // namespace

SimAgent::SimAgent(World world, Options options, std::function<void()> on_ended)
    : world_(world),
      options_(std::move(options)),
      on_ended_(std::move(on_ended)),
      process_(std::make_shared<Process>(world.scheduler, world.random)),
      core_(*this, {.checks_health = options_.checks_health,
                    .grace = seconds(30),
                    .min_nodes = options_.request.settings.min_nodes,
                    .max_nodes = options_.request.settings.max_nodes}),
      agent_session_(world, options_.host, process_, options_.clock_offset,
                     [this](const AgentSession::Action& action) { OnAction(action); }) {}

void SimAgent::Terminate() {
  process_->Do([this] { core_.OnSignal(SIGTERM); });
}

void SimAgent::Drain(int times) {
  if (times == 0) return;
  process_->Do([this] { core_.OnDrained("it is drained"); });
  process_->After(world_.random.Between(seconds(1), seconds(3)),
                  [this, times] { Drain(times - 1); });
}

void SimAgent::OnAction(const AgentSession::Action& action) {
  if (const auto* tell = std::get_if<AgentSession::Tell>(&action))
    return OnDirective(tell->directive);
  if (const auto* lost = std::get_if<AgentSession::Lost>(&action)) return OnLost(lost->status);
  if (std::holds_alternative<AgentSession::Left>(action)) return core_.OnGoodbyeHeard();
  if (std::holds_alternative<AgentSession::BackInTouch>(action)) OnBackInTouch();
  if (options_.mutations.does_not_fence) return;
  if (const auto* deadline = std::get_if<AgentSession::Deadline>(&action))
    OnDeadline(deadline->time);
  if (const auto* fenced = std::get_if<AgentSession::Fenced>(&action)) OnFenced(fenced->why);
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
  if (const auto* answer = std::get_if<LeaveAnswer>(&directive)) {
    world_.incidents.Count(answer->may_leave ? Incident::kMayLeave : Incident::kHasToStay);
  }
  core_.OnDirective(directive, Now());
}

void SimAgent::OnBackInTouch() {
  if (group_ != nullptr) group_->guard()->MoveDeathNotice(agent_session_.place());
}

void SimAgent::OnDeadline(std::optional<TimePoint> deadline) {
  if (!deadline) world_.checks.rounds.OnPlaceKept(node_id());
  core_.OnDeadline(deadline);
  if (group_ != nullptr) group_->SetDeadline(deadline);
}

void SimAgent::OnFenced(const std::string& why) {
  world_.Log(node_id(), " is fenced");
  killed_ = true;
  core_.OnFenced(why);
}

void SimAgent::OnLost(const absl::Status& status) {
  world_.Log(node_id(), " gives up");
  lost_ = true;
  // Its lease still ran when it was proven that the daemon is dead and remembers nothing.
  const bool proven = absl::StrContains(status.message(), "its process has died");
  if (proven && group_ != nullptr && !killed_ && !group_->guard()->has_struck()) {
    world_.incidents.Count(Incident::kGraceKept);
    group_->guard()->ExpectNoStrike();
  }
  core_.OnLost(status);
}

void SimAgent::CheckHealth() {
  const bool hangs = world_.random.Chance(1, 40);
  const bool fails = hangs || world_.random.Chance(1, 40);
  const Duration takes =
      hangs ? kCheckTimeout : world_.random.Between(milliseconds(1), kLongestCheck);
  process_->After(takes, [this, fails, number = ++health_checks_] {
    if (number != health_checks_) return;
    if (fails) world_.incidents.Count(Incident::kUnfit);
    core_.OnHealth(fails ? absl::UnavailableError("its health check failed") : absl::OkStatus());
  });
}

void SimAgent::Join(RoundId after, const std::string& unfit) {
  JoinRequest request = options_.request;
  request.after = after.number;
  request.ran_in = ran_in_ = after.incarnation;
  request.unfit = unfit;
  agent_session_.Join(request);
}

void SimAgent::StartWorkers(const Assignment& assignment) {
  world_.checks.rounds.OnAssignment(node_id(), assignment);
  world_.checks.lives.OnWorkersStart(node_id(), assignment);
  killed_ = false;
  const int workers = options_.request.node.slots;
  auto processes =
      std::make_shared<WorkerProcesses>(world_, node_id(), assignment, options_.habits, workers);
  auto guard = std::make_shared<SimGuard>(world_, options_.host, agent_session_.place(),
                                          options_.clock_offset, options_.mutations, processes,
                                          agent_session_.session());
  group_ = std::make_shared<SimWorkerGroup>(
      world_, process_, options_.clock_offset, options_.ladder, std::move(processes),
      std::move(guard),
      SimWorkerGroup::Callbacks{
          .on_started = [this] { core_.OnWorkersStarted(); },
          .on_first_failure = [this](const WorkerFailure& failure,
                                     bool lost_touch) { OnFirstFailure(failure, lost_touch); },
          .on_done =
              [this](const worker::GroupResult& result) {
                group_.reset();
                core_.OnWorkersGone(result);
              }});
  if (!options_.mutations.does_not_fence) group_->SetDeadline(core_.deadline());
  group_->Start(workers);
  if (options_.habits.obey || !world_.random.Chance(1, 100)) return;
  // Just then somebody stops it, for longer than its lease or not.
  process_->Stop();
  world_.scheduler.After(world_.random.Between(milliseconds(1), seconds(15)),
                         [weak = std::weak_ptr<Process>(process_)] {
                           if (const auto process = weak.lock()) process->Continue();
                         });
}

// What the guard has killed must not be taken for a failure.
void SimAgent::OnFirstFailure(const WorkerFailure& failure, bool lost_touch) {
  if (lost_touch && !options_.mutations.reports_what_the_guard_killed) {
    return core_.OnLostTouch();
  }
  core_.OnFirstFailure(failure);
}

void SimAgent::StopWorkers(int signal) {
  if (group_ == nullptr) return;
  worker::StopLadder ladder = options_.ladder;
  ladder.first_signal = signal;
  group_->Stop(signal == SIGKILL ? worker::StopLadder::Now() : ladder);
}

void SimAgent::Finish(const launcher::RunResult& result) {
  CheckResult(result);
  on_ended_();
}

// No node is sent away without cause.
void SimAgent::CheckResult(const launcher::RunResult& result) const {
  const auto* failed = std::get_if<launcher::RendezvousFailed>(&result);
  if (failed == nullptr || lost_) return;
  const std::string why(failed->status.message());
  // True when the node was silent too long: the job has ended without it, or goes on.
  if (absl::StrContains(why, "how the job ended is not known")) return;
  const bool ended = world_.checks.rounds.MayHaveEnded(options_.request.run_id, ran_in_);
  if (ended && absl::StrContains(why, "its outcome is no longer known")) return;
  if (absl::StrContains(why, "this node cannot take part")) return;
  // An agent that was killed before may still have it, as far as the daemon knows.
  const bool has_rank = options_.request.settings.exact_ranks;
  if (has_rank && absl::StrContains(why, "asks for it, too")) return;
  world_.checks.violations.Add(Check::kTurnedAway, absl::StrCat(node_id(), ": ", why));
}

}  // namespace muster::rendezvous
