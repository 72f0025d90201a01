#include "launcher/agent/agent_core.h"

#include <algorithm>
#include <csignal>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "base/signal_names.h"
#include "rendezvous/core/phrases.h"
#include "rendezvous/core/protocol.h"

namespace muster::launcher {
namespace {

constexpr char kTimeIsOver[] = "the workers may not run any longer without a rendezvous";

const char* EndName(worker::GroupEnd end) {
  switch (end) {
    case worker::GroupEnd::kSucceeded:
      return "succeeded";
    case worker::GroupEnd::kFailed:
      return "failed";
    case worker::GroupEnd::kStopped:
      return "stopped";
  }
  return "";
}

bool Starts(const Action& action) {
  return std::holds_alternative<StartWorkers>(action);
}

template <typename Kind>
bool AsksFor(const Actions& asked) {
  return std::any_of(asked.begin(), asked.end(),
                     [](const Action& action) { return std::holds_alternative<Kind>(action); });
}

// Who had to be killed of those that were told to stop; empty: nobody.
std::string DescribeKilled(const worker::GroupResult& result) {
  std::vector<std::string> ranks;
  for (const worker::WorkerExit& exit : result.exits) {
    const bool killed = exit.stopped_by_group && exit.status && exit.status->signal == SIGKILL;
    if (killed) ranks.push_back(absl::StrCat(exit.rank));
  }
  if (ranks.empty()) return "";
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", base::ShortList(ranks),
                      " did not stop when told to and needed SIGKILL");
}

}  // namespace

CoreActions AgentCore::Begin() {
  CoreActions actions;
  Add(policy_.Begin(), actions);
  return actions;
}

CoreActions AgentCore::OnDirective(const rendezvous::Directive& directive,
                                   rendezvous::TimePoint now) {
  if (const auto* welcome = std::get_if<rendezvous::Welcome>(&directive)) {
    version_ = welcome->version;
  }
  if (const auto* answer = std::get_if<rendezvous::LeaveAnswer>(&directive)) {
    return OnLeaveAnswer(*answer);
  }
  CoreActions actions;
  if (auto event = EventOf(directive)) actions.emplace_back(*std::move(event));
  Actions asked = policy_.OnDirective(directive);
  // The Assignment was under way for long, or this process stood still: another round may run by
  // now.
  const bool too_late = deadline_.has_value() && *deadline_ <= now;
  if (!too_late || std::erase_if(asked, Starts) == 0) {
    Add(asked, actions);
    return actions;
  }
  round_ = std::get<rendezvous::Assignment>(directive).round;
  Add(asked, actions);
  actions.emplace_back(EventOfRound(AgentEventKind::kFenced, kTimeIsOver));
  Add(policy_.OnStartTooLate(kTimeIsOver), actions);
  return actions;
}

std::optional<AgentEvent> AgentCore::EventOf(const rendezvous::Directive& directive) const {
  if (const auto* waiting = std::get_if<rendezvous::Waiting>(&directive)) {
    return AgentEvent{
        .kind = AgentEventKind::kWaiting, .round = waiting->round, .cause = waiting->sentence};
  }
  if (const auto* stop = std::get_if<rendezvous::Stop>(&directive)) {
    return AgentEvent{
        .kind = AgentEventKind::kToldToStop, .round = stop->round, .cause = stop->reason};
  }
  if (const auto* verdict = std::get_if<rendezvous::Verdict>(&directive)) {
    return EventOfRound(AgentEventKind::kVerdict, verdict->sentence);
  }
  if (const auto* evicted = std::get_if<rendezvous::Evicted>(&directive)) {
    return EventOfRound(AgentEventKind::kEvicted, evicted->sentence);
  }
  if (const auto* notice = std::get_if<rendezvous::Notice>(&directive)) {
    if (notice->kind == rendezvous::Notice::Kind::kOther) return std::nullopt;
    const bool begins = notice->kind == rendezvous::Notice::Kind::kStraggler;
    return AgentEvent{.kind = begins ? AgentEventKind::kStraggler : AgentEventKind::kStragglerOver,
                      .round = round_,
                      .rank = notice->rank.value_or(-1),
                      .cause = notice->sentence};
  }
  return std::nullopt;
}

CoreActions AgentCore::OnDeadline(std::optional<rendezvous::TimePoint> deadline) {
  deadline_ = deadline;
  return {GuardWorkers{deadline}};
}

CoreActions AgentCore::OnFenced(const std::string& why) {
  CoreActions actions;
  if (policy_.workers_run()) actions.emplace_back(EventOfRound(AgentEventKind::kFenced, why));
  Add(policy_.OnFenced(why), actions);
  return actions;
}

CoreActions AgentCore::OnLost(const absl::Status& status) {
  CoreActions actions = {EventOfRound(AgentEventKind::kLost, std::string(status.message()))};
  Add(policy_.OnLost(status), actions);
  return actions;
}

CoreActions AgentCore::OnHealth(const absl::Status& status) {
  const std::optional<AskForPlace> ask = fitness_.OnHealth(status);
  if (!ask.has_value()) return {};
  CoreActions actions;
  if (!status.ok()) actions.emplace_back(EventOfRound(AgentEventKind::kUnfit, ask->unfit));
  actions.emplace_back(*ask);
  return actions;
}

CoreActions AgentCore::OnCannotStart(const absl::Status& status) {
  CoreActions actions;
  Add(policy_.OnCannotStart(status), actions);
  return actions;
}

CoreActions AgentCore::OnWorkersStarted() {
  CoreActions actions = {EventOfRound(AgentEventKind::kWorkersStarted, "")};
  Add(policy_.OnWorkersStarted(), actions);
  return actions;
}

CoreActions AgentCore::OnFirstFailure(const rendezvous::WorkerFailure& failure) {
  workers_have_grace_ = grace_.count() > 0;
  CoreActions actions = {
      Tell{Tell::kWarning, absl::StrCat("rank ", failure.rank, " ", failure.what)},
      AgentEvent{.kind = AgentEventKind::kWorkerFailed,
                 .round = round_,
                 .rank = failure.rank,
                 .pid = static_cast<int>(failure.pid),
                 .cause = failure.what}};
  Add(policy_.OnFirstFailure(failure), actions);
  return actions;
}

CoreActions AgentCore::OnLostTouch() {
  return OnFenced(kTimeIsOver);
}

CoreActions AgentCore::OnWorkersGone(const worker::GroupResult& result) {
  fitness_.OnWorkersGone(result);
  CoreActions actions = {EventOfRound(AgentEventKind::kWorkersGone, EndName(result.end))};
  std::string killed = workers_have_grace_ ? DescribeKilled(result) : "";
  if (!killed.empty()) actions.emplace_back(Tell{Tell::kWarning, std::move(killed)});
  Add(policy_.OnWorkersGone(result.end == worker::GroupEnd::kSucceeded), actions);
  return actions;
}

CoreActions AgentCore::OnSignal(int signal) {
  const std::string name = base::SignalName(signal);
  const Actions asked = policy_.OnSignal(signal);
  CoreActions actions = {Tell{Tell::kWarning, DescribeSignal(signal, asked)},
                         EventOfRound(AgentEventKind::kSignal, name)};
  Add(asked, actions);
  return actions;
}

std::string AgentCore::DescribeSignal(int signal, const Actions& asked) const {
  const std::string received = absl::StrCat("received ", base::SignalName(signal));
  if (!policy_.workers_run()) return received;
  const bool at_once = AsksFor<StopWorkers>(asked) && grace_.count() == 0;
  if (at_once || AsksFor<KillWorkers>(asked)) return received + "; killing the workers";
  const std::string left =
      AsksFor<StopWorkers>(asked) ? GraceInWords() : "the workers are already being stopped";
  const char* const what_kills =
      sigterm_counts_once_ && signal == SIGTERM
          ? ", and SIGINT kills them at once; SIGTERM does not, as Slurm repeats it"
          : ", and a second signal kills them at once";
  return absl::StrCat(received, "; ", left, what_kills);
}

std::string AgentCore::GraceInWords() const {
  if (grace_.count() == 0) return "the workers are killed";
  if (grace_ == std::chrono::milliseconds::max()) {
    return "the workers may take as long as they need to stop";
  }
  return absl::StrCat("the workers have ", base::Seconds(grace_), " to stop");
}

CoreActions AgentCore::OnDrained(const std::string& why) {
  // What asks the workers to end anyway comes first; where that is not the end, it is asked again.
  if (result()) return {};
  if (version_ >= rendezvous::kLeaveAnswers && !needs_.serves_rendezvous) {
    drained_ = why;
    CoreActions actions;
    Add(policy_.OnDrained(why), actions);
    return actions;
  }
  if (!policy_.is_undisturbed()) return {};
  drained_ = why;
  const bool is_fixed = needs_.min_nodes == needs_.max_nodes;
  if (needs_.serves_rendezvous && !is_fixed) return Stay("the rendezvous is served here");
  if (const std::string why_not = WhyItStays(); !why_not.empty()) return Stay(why_not);
  return LeaveEarly();
}

std::string AgentCore::WhyItStays() const {
  if (nodes_ > needs_.min_nodes) return "";
  return rendezvous::WhyNodeIsNeeded(needs_.min_nodes, needs_.max_nodes, nodes_);
}

CoreActions AgentCore::OnLeaveAnswer(const rendezvous::LeaveAnswer& answer) {
  // Unless the run ends for another reason by now. Workers may be stopping or gone: the rendezvous
  // goes on without them.
  if (result() || drained_.empty()) return {};
  return answer.may_leave ? LeaveEarly() : Stay(answer.why_not);
}

CoreActions AgentCore::Stay(const std::string& why_not) {
  if (std::exchange(told_it_stays_, true)) return {};
  return {Tell{Tell::kWarning,
               absl::StrCat("this node stays in the job, although ", drained_, ": ", why_not)}};
}

CoreActions AgentCore::LeaveEarly() {
  const std::string left = policy_.is_undisturbed() ? absl::StrCat("; ", GraceInWords()) : "";
  CoreActions actions = {
      Tell{Tell::kWarning, absl::StrCat("this node leaves the job, as ", drained_, left)},
      EventOfRound(AgentEventKind::kDrained, drained_)};
  Add(policy_.OnMayLeave(drained_), actions);
  return actions;
}

CoreActions AgentCore::OnGoodbyeHeard() {
  CoreActions actions;
  Add(policy_.OnGoodbyeHeard(), actions);
  return actions;
}

void AgentCore::Add(const Actions& asked, CoreActions& actions) {
  for (const Action& action : asked) {
    if (const auto* join = std::get_if<JoinRound>(&action)) {
      AddJoin(*join, actions);
      continue;
    }
    if (const auto* start = std::get_if<StartWorkers>(&action)) {
      workers_have_grace_ = false;
      round_ = start->assignment.round;
      nodes_ = start->assignment.group_world_size;
      actions.emplace_back(EventOfPlace(start->assignment));
    } else if (const auto* stop = std::get_if<StopWorkers>(&action)) {
      workers_have_grace_ = grace_.count() > 0;
      actions.emplace_back(result() ? RunState::kStopping : RunState::kRestarting);
      actions.emplace_back(EventOfRound(AgentEventKind::kStopping, base::SignalName(stop->signal)));
    } else if (std::holds_alternative<SayGoodbye>(action) ||
               std::holds_alternative<Finish>(action)) {
      if (fitness_.Drop()) actions.emplace_back(DropHealthCheck{});
    }
    std::visit(
        [&actions](const auto& kind) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(kind)>, JoinRound>) {
            actions.emplace_back(kind);
          }
        },
        action);
  }
}

void AgentCore::AddJoin(const JoinRound& join, CoreActions& actions) {
  actions.emplace_back(RunState::kWaiting);
  actions.emplace_back(AgentEvent{.kind = AgentEventKind::kJoining});
  if (const auto ask = fitness_.BeforeJoin(join.after)) {
    actions.emplace_back(*ask);
  } else {
    actions.emplace_back(CheckHealth{});
  }
}

AgentEvent AgentCore::EventOfPlace(const rendezvous::Assignment& assignment) {
  return {.kind = AgentEventKind::kAssigned,
          .round = assignment.round,
          .cause = assignment.rank_reason,
          .place = EventPlace{.incarnation = assignment.incarnation,
                              .node_rank = assignment.group_rank,
                              .nodes = assignment.group_world_size,
                              .first_rank = assignment.base_rank,
                              .world_size = assignment.world_size}};
}

AgentEvent AgentCore::EventOfRound(AgentEventKind kind, std::string cause) const {
  return {.kind = kind, .round = round_, .cause = std::move(cause)};
}

}  // namespace muster::launcher
