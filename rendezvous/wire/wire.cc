#include "rendezvous/wire/wire.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "rendezvous/core/values/phrases.h"
#include "rendezvous/wire/parts.h"
#include "rendezvous/wire/worker_wire.h"

namespace muster::rendezvous {
namespace {

// Most bytes accepted of a reason.
constexpr std::size_t kMaxReason = 256;

constexpr std::pair<JobState, v1::JobDescription::State> kJobStates[] = {
    {JobState::kGathering, v1::JobDescription::GATHERING},
    {JobState::kRunning, v1::JobDescription::RUNNING},
    {JobState::kEnded, v1::JobDescription::ENDED}};
constexpr std::pair<Notice::Kind, v1::Notice::Kind> kNoticeKinds[] = {
    {Notice::Kind::kStraggler, v1::Notice::STRAGGLER},
    {Notice::Kind::kStragglerOver, v1::Notice::STRAGGLER_OVER}};
static_assert(std::size(kJobStates) == v1::JobDescription::State_ARRAYSIZE - 1);
static_assert(std::size(kNoticeKinds) == v1::Notice::Kind_ARRAYSIZE - 1);

void ToWire(const Assignment& assignment, v1::Assignment* wire) {
  wire->set_run_id(assignment.run_id);
  wire->set_incarnation(assignment.incarnation);
  wire->set_round(assignment.round);
  wire->set_group_rank(assignment.group_rank);
  wire->set_group_world_size(assignment.group_world_size);
  wire->set_base_rank(assignment.base_rank);
  wire->set_world_size(assignment.world_size);
  wire->set_role_base_rank(assignment.role_base_rank);
  wire->set_role_world_size(assignment.role_world_size);
  wire->set_master_addr(Line(assignment.master_addr));
  wire->set_master_port(assignment.master_port);
  wire->set_agent_store(assignment.agent_store);
  wire->set_store_tunnel(assignment.store_tunnel);
  for (const std::string& address : assignment.member_addresses) {
    wire->add_member_addresses(Line(address));
  }
  wire->set_restart_count(assignment.restart_count);
  wire->set_max_restarts(assignment.max_restarts);
  wire->set_rank_reason(Line(assignment.rank_reason));
}

Assignment FromWire(const v1::Assignment& wire) {
  return {.run_id = wire.run_id(),
          .incarnation = wire.incarnation(),
          .round = wire.round(),
          .group_rank = wire.group_rank(),
          .group_world_size = wire.group_world_size(),
          .base_rank = wire.base_rank(),
          .world_size = wire.world_size(),
          .role_base_rank = wire.role_base_rank(),
          .role_world_size = wire.role_world_size(),
          .master_addr = Line(wire.master_addr()),
          .master_port = FromPort(wire.master_port()),
          .agent_store = wire.agent_store(),
          .store_tunnel = wire.store_tunnel(),
          .member_addresses = {wire.member_addresses().begin(), wire.member_addresses().end()},
          .restart_count = wire.restart_count(),
          .max_restarts = wire.max_restarts(),
          .rank_reason = Line(wire.rank_reason())};
}

Notice ReadNotice(const v1::Notice& wire) {
  Notice notice{.sentence = Line(wire.sentence()),
                .kind = rendezvous::FromWire(kNoticeKinds, wire.kind(), Notice::Kind::kOther)};
  if (wire.has_rank() && wire.rank() >= 0) notice.rank = wire.rank();
  return notice;
}

// Fills the field of `wire` for the alternative of a Directive.
struct DirectiveWriter {
  v1::Directive* wire;

  void operator()(const Welcome& welcome) const {
    wire->mutable_welcome()->set_keep_alive_ms(ToMs(welcome.keep_alive));
    wire->mutable_welcome()->set_lease_ms(ToMs(welcome.lease));
    wire->mutable_welcome()->set_incarnation(welcome.incarnation);
    wire->mutable_welcome()->set_durable(welcome.durable);
    wire->mutable_welcome()->set_version(static_cast<std::uint32_t>(welcome.version));
    wire->mutable_welcome()->set_knock_secret(welcome.knock_secret);
  }
  void operator()(const Waiting& waiting) const {
    wire->mutable_waiting()->set_round(waiting.round);
    wire->mutable_waiting()->set_sentence(Line(waiting.sentence));
    wire->mutable_waiting()->set_spare(waiting.spare);
  }
  void operator()(const Assignment& assignment) const { ToWire(assignment, wire->mutable_start()); }
  void operator()(const Stop& stop) const {
    wire->mutable_stop()->set_round(stop.round);
    wire->mutable_stop()->set_reason(Line(stop.reason));
    wire->mutable_stop()->set_incarnation(stop.incarnation);
  }
  void operator()(const Fenced& fenced) const {
    wire->mutable_fenced()->set_round(fenced.round);
    wire->mutable_fenced()->set_sentence(Line(fenced.sentence));
    wire->mutable_fenced()->set_incarnation(fenced.incarnation);
  }
  void operator()(const Verdict& verdict) const { ToWire(verdict, wire->mutable_verdict()); }
  void operator()(const Refused& refused) const {
    wire->mutable_refused()->set_sentence(Line(refused.sentence));
  }
  void operator()(const Notice& notice) const {
    wire->mutable_notice()->set_sentence(Line(notice.sentence));
    wire->mutable_notice()->set_kind(OnWire(kNoticeKinds, notice.kind));
    if (notice.rank) wire->mutable_notice()->set_rank(*notice.rank);
  }
  void operator()(const Heard& heard) const { wire->mutable_heard()->set_number(heard.number); }
  void operator()(const Evicted& evicted) const {
    wire->mutable_evicted()->set_sentence(Line(evicted.sentence));
  }
  void operator()(const LogWanted& wanted) const {
    rendezvous::ToWire(wanted, wire->mutable_log_wanted());
  }
  void operator()(const LeaveAnswer& answer) const {
    wire->mutable_leave_answer()->set_may_leave(answer.may_leave);
    wire->mutable_leave_answer()->set_why_not(Line(answer.why_not));
  }
};

void WriteJoin(const JoinRequest& request, v1::Join* wire) {
  wire->set_run_id(request.run_id);
  rendezvous::ToWire(request.settings, wire->mutable_settings());
  rendezvous::ToWire(request.node, wire->mutable_node());
  wire->set_session(request.session);
  if (request.after != kNoRound) wire->set_after(request.after);
  wire->set_unfit(Line(request.unfit));
  wire->set_connection(request.connection);
  wire->set_ran_in(request.ran_in);
  rendezvous::ToWire(request.speaks, wire->mutable_speaks());
}

JoinRequest ReadJoin(const v1::Join& wire) {
  return {.run_id = wire.run_id(),
          .settings = rendezvous::FromWire(wire.settings()),
          .node = rendezvous::FromWire(wire.node()),
          .session = wire.session(),
          .connection = wire.connection(),
          .after = wire.has_after() ? wire.after() : kNoRound,
          .ran_in = wire.ran_in(),
          .unfit = Line(wire.unfit()),
          .speaks = rendezvous::FromWire(wire.speaks())};
}

WorkersExited ReadExited(const v1::WorkersExited& wire) {
  WorkersExited exited{.round = {wire.incarnation(), wire.round()},
                       .outcome = {.succeeded = !wire.has_failure()}};
  if (wire.has_failure()) exited.outcome.failure = rendezvous::FromWire(wire.failure());
  exited.failed_ago = std::max(FromMs(wire.failed_ago_ms()), Duration::zero());
  return exited;
}

KeepAlive ReadKeepAlive(const v1::KeepAlive& wire) {
  KeepAlive beat{
      .number = wire.number(), .heard = wire.heard(), .log_bytes_lost = wire.log_bytes_lost()};
  if (wire.has_progress()) beat.progress = rendezvous::FromWire(wire.progress());
  return beat;
}

// Fills the field of `wire` for the alternative of an Event.
struct EventWriter {
  v1::AgentEvent* wire;

  void operator()(const JoinRequest& request) const { WriteJoin(request, wire->mutable_join()); }
  void operator()(const Resume& resume) const {
    wire->mutable_resume()->set_session(resume.session);
    wire->mutable_resume()->set_connection(resume.connection);
    rendezvous::ToWire(resume.speaks, wire->mutable_resume()->mutable_speaks());
  }
  void operator()(const KeepAlive& beat) const {
    wire->mutable_keep_alive()->set_number(beat.number);
    wire->mutable_keep_alive()->set_heard(beat.heard);
    wire->mutable_keep_alive()->set_log_bytes_lost(beat.log_bytes_lost);
    if (!beat.progress.is_news()) return;
    rendezvous::ToWire(beat.progress, wire->mutable_keep_alive()->mutable_progress());
  }
  void operator()(const WorkersStarted& started) const {
    wire->mutable_workers_started()->set_round(started.round.number);
    wire->mutable_workers_started()->set_incarnation(started.round.incarnation);
  }
  void operator()(const WorkersExited& exited) const {
    v1::WorkersExited* const out = wire->mutable_workers_exited();
    out->set_round(exited.round.number);
    out->set_incarnation(exited.round.incarnation);
    if (exited.outcome.succeeded) return;
    rendezvous::ToWire(exited.outcome.failure.value_or(WorkerFailure{}), out->mutable_failure());
    out->set_failed_ago_ms(ToMs(exited.failed_ago));
  }
  void operator()(const Leaving& leaving) const {
    wire->mutable_leaving()->set_reason(OneLine(leaving.reason, kMaxReason));
  }
  void operator()(const AskToLeave& asked) const {
    wire->mutable_ask_to_leave()->set_round(asked.round.number);
    wire->mutable_ask_to_leave()->set_incarnation(asked.round.incarnation);
    wire->mutable_ask_to_leave()->set_reason(OneLine(asked.reason, kMaxReason));
  }
  void operator()(const Goodbye& goodbye) const {
    wire->mutable_goodbye()->set_reason(OneLine(goodbye.reason, kMaxReason));
  }
};

}  // namespace

void ToWire(const Event& event, v1::AgentEvent* wire) {
  std::visit(EventWriter{wire}, event);
}

Event FromWire(const v1::AgentEvent& wire) {
  switch (wire.event_case()) {
    case v1::AgentEvent::kJoin:
      return ReadJoin(wire.join());
    case v1::AgentEvent::kResume:
      return Resume{wire.resume().session(), wire.resume().connection(),
                    rendezvous::FromWire(wire.resume().speaks())};
    case v1::AgentEvent::kKeepAlive:
      return ReadKeepAlive(wire.keep_alive());
    case v1::AgentEvent::kWorkersStarted:
      return WorkersStarted{{wire.workers_started().incarnation(), wire.workers_started().round()}};
    case v1::AgentEvent::kWorkersExited:
      return ReadExited(wire.workers_exited());
    case v1::AgentEvent::kLeaving:
      return Leaving{OneLine(wire.leaving().reason(), kMaxReason)};
    case v1::AgentEvent::kAskToLeave:
      return AskToLeave{{wire.ask_to_leave().incarnation(), wire.ask_to_leave().round()},
                        OneLine(wire.ask_to_leave().reason(), kMaxReason)};
    case v1::AgentEvent::kGoodbye:
      return Goodbye{OneLine(wire.goodbye().reason(), kMaxReason)};
    case v1::AgentEvent::EVENT_NOT_SET:
      break;
  }
  return KeepAlive{};
}

void ToWire(const Directive& directive, v1::Directive* wire) {
  std::visit(DirectiveWriter{wire}, directive);
}

Directive FromWire(const v1::Directive& wire) {
  switch (wire.directive_case()) {
    case v1::Directive::kWelcome:
      return Welcome{FromMs(wire.welcome().keep_alive_ms()),
                     FromMs(wire.welcome().lease_ms()),
                     wire.welcome().incarnation(),
                     wire.welcome().durable(),
                     wire.welcome().knock_secret(),
                     wire.welcome().has_version() ? Version(wire.welcome().version()) : 1};
    case v1::Directive::kWaiting:
      return Waiting{wire.waiting().round(), Line(wire.waiting().sentence()),
                     wire.waiting().spare()};
    case v1::Directive::kStart:
      return FromWire(wire.start());
    case v1::Directive::kStop:
      return Stop{wire.stop().round(), Line(wire.stop().reason()), wire.stop().incarnation()};
    case v1::Directive::kFenced:
      return Fenced{wire.fenced().round(), Line(wire.fenced().sentence()),
                    wire.fenced().incarnation()};
    case v1::Directive::kVerdict:
      return FromWire(wire.verdict());
    case v1::Directive::kRefused:
      return Refused{Line(wire.refused().sentence())};
    case v1::Directive::kNotice:
      return ReadNotice(wire.notice());
    case v1::Directive::kHeard:
      return Heard{wire.heard().number()};
    case v1::Directive::kEvicted:
      return Evicted{Line(wire.evicted().sentence())};
    case v1::Directive::kLogWanted:
      return FromWire(wire.log_wanted());
    case v1::Directive::kLeaveAnswer:
      return LeaveAnswer{wire.leave_answer().may_leave(), Line(wire.leave_answer().why_not())};
    case v1::Directive::DIRECTIVE_NOT_SET:
      break;
  }
  return Waiting{kNoRound, "", false};
}

void ToWire(const JobSnapshot& snapshot, v1::JobDescription* wire) {
  wire->set_run_id(snapshot.run_id);
  wire->set_state(OnWire(kJobStates, snapshot.state));
  wire->set_round(snapshot.round);
  wire->set_sentence(Line(snapshot.sentence));
  ToWire(snapshot.settings, wire->mutable_settings());
  wire->set_restart_count(snapshot.restart_count);
  wire->set_age_ms(ToMs(snapshot.age));
  wire->set_productive_ms(ToMs(snapshot.productive));
  wire->set_store_keys(snapshot.store_keys);
  wire->set_store_bytes(snapshot.store_bytes);
  wire->set_log_bytes_lost(snapshot.log_bytes_lost);
  for (const RoundSnapshot& round : snapshot.rounds) ToWire(round, wire->add_rounds());
  if (snapshot.ended_ago) wire->set_ended_ago_ms(ToMs(*snapshot.ended_ago));
  if (snapshot.outcome) wire->set_outcome(ToWire(*snapshot.outcome));
  if (snapshot.failure) ToWire(*snapshot.failure, wire->mutable_failure());
  for (const NodeSnapshot& node : snapshot.nodes) {
    v1::NodeDescription* const out = wire->add_nodes();
    ToWire(node.node, out->mutable_node());
    out->set_state(ToWire(node.state));
    out->set_group_rank(node.group_rank);
    out->set_rank_reason(Line(node.rank_reason));
    if (node.heard_ago) out->set_heard_ago_ms(ToMs(*node.heard_ago));
    if (node.state_ago) out->set_state_ago_ms(ToMs(*node.state_ago));
    if (!node.ranks.empty()) ToWire(node.ranks, out->mutable_progress());
    if (!node.alerts.empty()) ToWire(node.alerts, out->mutable_progress());
  }
}

JobSnapshot FromWire(const v1::JobDescription& wire) {
  JobSnapshot snapshot{.run_id = Name(wire.run_id()),
                       .state = FromWire(kJobStates, wire.state(), JobState::kGathering),
                       .round = wire.round(),
                       .sentence = Line(wire.sentence()),
                       .settings = FromWire(wire.settings()),
                       .restart_count = wire.restart_count(),
                       .age = FromMs(wire.age_ms()),
                       .productive = FromMs(wire.productive_ms()),
                       .store_keys = wire.store_keys(),
                       .store_bytes = wire.store_bytes(),
                       .log_bytes_lost = wire.log_bytes_lost()};
  for (const v1::RoundDescription& round : wire.rounds()) {
    snapshot.rounds.push_back(FromWire(round));
  }
  if (wire.has_ended_ago_ms()) snapshot.ended_ago = FromMs(wire.ended_ago_ms());
  if (wire.outcome() != v1::Verdict::KIND_UNSPECIFIED) snapshot.outcome = FromWire(wire.outcome());
  if (wire.has_failure()) snapshot.failure = FromWire(wire.failure());
  for (const v1::NodeDescription& node : wire.nodes()) {
    snapshot.nodes.push_back({.node = FromWire(node.node()),
                              .state = FromWire(node.state()),
                              .group_rank = node.group_rank(),
                              .rank_reason = Line(node.rank_reason()),
                              .ranks = RanksFromWire(node.progress()),
                              .alerts = RankAlertsFromWire(node.progress())});
    if (node.has_heard_ago_ms()) snapshot.nodes.back().heard_ago = FromMs(node.heard_ago_ms());
    if (node.has_state_ago_ms()) snapshot.nodes.back().state_ago = FromMs(node.state_ago_ms());
  }
  return snapshot;
}

void ToWire(const JobEnd& end, v1::JobEnd* wire) {
  wire->set_run_id(end.run_id);
  wire->set_kind(ToWire(end.kind));
  wire->set_sentence(Line(end.sentence));
}

JobEnd FromWire(const v1::JobEnd& wire) {
  return {.run_id = Name(wire.run_id()),
          .kind = FromWire(wire.kind()),
          .sentence = Line(wire.sentence())};
}

}  // namespace muster::rendezvous
