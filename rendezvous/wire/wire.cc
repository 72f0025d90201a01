#include "rendezvous/wire/wire.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>

#include "rendezvous/wire/printable.h"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kMaxText = 4096;
constexpr int kMaxListed = 64;

std::int64_t ToMs(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// A hundred years is as good as any longer time, and does not overflow when added to now.
Duration FromMs(std::int64_t ms) {
  constexpr std::int64_t kHundredYears = std::int64_t{100} * 365 * 86'400 * 1000;
  return std::chrono::milliseconds(std::clamp(ms, -kHundredYears, kHundredYears));
}

std::uint16_t FromPort(std::uint32_t port) {
  return port <= std::numeric_limits<std::uint16_t>::max() ? static_cast<std::uint16_t>(port) : 0;
}

// What every string that people see goes through, both on its way out and on its way in.
std::string Line(std::string_view text) {
  return OneLine(text, kMaxText);
}

void ToWire(const JobSettings& settings, v1::JobSettings* wire) {
  wire->set_min_nodes(settings.min_nodes);
  wire->set_max_nodes(settings.max_nodes);
  wire->set_last_call_ms(ToMs(settings.last_call));
  wire->set_join_timeout_ms(ToMs(settings.join_timeout));
  wire->set_lease_ms(ToMs(settings.lease));
  wire->set_max_restarts(settings.max_restarts);
  wire->set_keep_alive_ms(ToMs(settings.keep_alive));
  wire->set_exact_ranks(settings.exact_ranks);
}

JobSettings FromWire(const v1::JobSettings& wire) {
  return {.min_nodes = wire.min_nodes(),
          .max_nodes = wire.max_nodes(),
          .last_call = FromMs(wire.last_call_ms()),
          .join_timeout = FromMs(wire.join_timeout_ms()),
          // An agent on the other side of a network always has a lease.
          .lease = FromMs(std::max<std::int64_t>(wire.lease_ms(), 1)),
          .keep_alive = FromMs(wire.keep_alive_ms()),
          .max_restarts = wire.max_restarts(),
          .exact_ranks = wire.exact_ranks()};
}

void ToWire(const NodeInfo& node, v1::NodeInfo* wire) {
  wire->set_node_id(node.node_id);
  wire->set_host(Line(node.host));
  wire->set_address(Line(node.address));
  wire->set_master_port(node.master_port);
  wire->set_slots(node.slots);
  if (node.rank_hint) wire->set_rank_hint(*node.rank_hint);
  wire->set_role(Line(node.role));
  for (const std::string& label : node.topology) wire->add_topology(Line(label));
  for (const std::string& device : node.devices) wire->add_devices(Line(device));
  for (const std::string& address : node.addresses) wire->add_addresses(Line(address));
  wire->set_serves_store(node.serves_store);
}

NodeInfo FromWire(const v1::NodeInfo& wire) {
  NodeInfo node{.node_id = wire.node_id(),
                .host = Line(wire.host()),
                .address = Line(wire.address()),
                .master_port = FromPort(wire.master_port()),
                .serves_store = wire.serves_store(),
                .slots = wire.slots(),
                .role = Line(wire.role())};
  if (wire.has_rank_hint()) node.rank_hint = wire.rank_hint();
  for (const std::string& label : wire.topology()) {
    if (node.topology.size() < kMaxListed) node.topology.push_back(Line(label));
  }
  for (const std::string& device : wire.devices()) {
    if (node.devices.size() < kMaxListed) node.devices.push_back(Line(device));
  }
  for (const std::string& address : wire.addresses()) {
    if (node.addresses.size() < kMaxListed) node.addresses.push_back(Line(address));
  }
  return node;
}

void ToWire(const WorkerFailure& failure, v1::WorkerFailure* wire) {
  wire->set_rank(failure.rank);
  wire->set_local_rank(failure.local_rank);
  wire->set_host(Line(failure.host));
  wire->set_pid(failure.pid);
  wire->set_exit_code(failure.exit_code);
  wire->set_signal(failure.signal);
  wire->set_what(Line(failure.what));
  wire->set_stderr_tail(failure.stderr_tail);
  wire->set_log_path(Line(failure.log_path));
  wire->set_error_file(Line(failure.error_file));
  wire->set_error_message(Line(failure.error_message));
  wire->set_error_traceback(failure.error_traceback);
  wire->set_error_time(failure.error_time);
}

// The end of a text of several lines, made fit to be shown.
std::string Text(const std::string& text, std::size_t limit) {
  const std::size_t cut = text.size() > limit ? text.size() - limit : 0;
  return Printable(std::string_view(text).substr(cut), limit);
}

WorkerFailure FromWire(const v1::WorkerFailure& wire) {
  return {.rank = wire.rank(),
          .local_rank = wire.local_rank(),
          .host = Line(wire.host()),
          .pid = wire.pid(),
          .exit_code = wire.exit_code(),
          .signal = wire.signal(),
          .what = Line(wire.what()),
          .stderr_tail = Text(wire.stderr_tail(), kMaxStderrTail),
          .log_path = Line(wire.log_path()),
          .error_file = Line(wire.error_file()),
          .error_message = Line(wire.error_message()),
          .error_traceback = Text(wire.error_traceback(), kMaxTraceback),
          .error_time = wire.error_time()};
}

void ToWire(const Assignment& assignment, v1::Assignment* wire) {
  wire->set_run_id(assignment.run_id);
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
  for (const std::string& address : assignment.member_addresses) {
    wire->add_member_addresses(Line(address));
  }
  wire->set_restart_count(assignment.restart_count);
  wire->set_max_restarts(assignment.max_restarts);
  wire->set_rank_reason(Line(assignment.rank_reason));
}

Assignment FromWire(const v1::Assignment& wire) {
  return {.run_id = wire.run_id(),
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
          .member_addresses = {wire.member_addresses().begin(), wire.member_addresses().end()},
          .restart_count = wire.restart_count(),
          .max_restarts = wire.max_restarts(),
          .rank_reason = Line(wire.rank_reason())};
}

v1::Verdict::Kind ToWire(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSucceeded:
      return v1::Verdict::SUCCEEDED;
    case VerdictKind::kWorkerFailed:
      return v1::Verdict::WORKER_FAILED;
    case VerdictKind::kJoinTimeout:
      return v1::Verdict::JOIN_TIMEOUT;
    case VerdictKind::kClosed:
      return v1::Verdict::CLOSED;
  }
  return v1::Verdict::KIND_UNSPECIFIED;
}

VerdictKind FromWire(v1::Verdict::Kind kind) {
  switch (kind) {
    case v1::Verdict::SUCCEEDED:
      return VerdictKind::kSucceeded;
    case v1::Verdict::WORKER_FAILED:
      return VerdictKind::kWorkerFailed;
    case v1::Verdict::JOIN_TIMEOUT:
      return VerdictKind::kJoinTimeout;
    default:
      // A newer daemon's reason: the job has ended, and not with success.
      return VerdictKind::kClosed;
  }
}

v1::NodeDescription::State ToWire(NodeState state) {
  switch (state) {
    case NodeState::kJoined:
      return v1::NodeDescription::JOINED;
    case NodeState::kStarting:
      return v1::NodeDescription::STARTING;
    case NodeState::kRunning:
      return v1::NodeDescription::RUNNING;
    case NodeState::kSucceeded:
      return v1::NodeDescription::SUCCEEDED;
    case NodeState::kStopping:
      return v1::NodeDescription::STOPPING;
    case NodeState::kSpare:
      return v1::NodeDescription::SPARE;
  }
  return v1::NodeDescription::STATE_UNSPECIFIED;
}

v1::JobDescription::State ToWire(JobState state) {
  switch (state) {
    case JobState::kGathering:
      return v1::JobDescription::GATHERING;
    case JobState::kRunning:
      return v1::JobDescription::RUNNING;
    case JobState::kEnded:
      return v1::JobDescription::ENDED;
  }
  return v1::JobDescription::STATE_UNSPECIFIED;
}

// Fills the branch of `wire` that belongs to the alternative of a Directive.
struct DirectiveWriter {
  v1::Directive* wire;

  void operator()(const Welcome& welcome) const {
    wire->mutable_welcome()->set_keep_alive_ms(ToMs(welcome.keep_alive));
    wire->mutable_welcome()->set_lease_ms(ToMs(welcome.lease));
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
  }
  void operator()(const Fenced& fenced) const {
    wire->mutable_fenced()->set_round(fenced.round);
    wire->mutable_fenced()->set_sentence(Line(fenced.sentence));
  }
  void operator()(const Verdict& verdict) const {
    v1::Verdict* const out = wire->mutable_verdict();
    out->set_kind(ToWire(verdict.kind));
    out->set_sentence(Line(verdict.sentence));
    if (verdict.root_cause) ToWire(*verdict.root_cause, out->mutable_root_cause());
    out->set_rounds(verdict.rounds);
    out->set_restarts(verdict.restarts);
  }
  void operator()(const Refused& refused) const {
    wire->mutable_refused()->set_sentence(Line(refused.sentence));
  }
  void operator()(const Notice& notice) const {
    wire->mutable_notice()->set_sentence(Line(notice.sentence));
  }
};

Verdict FromWire(const v1::Verdict& wire) {
  Verdict verdict{.kind = FromWire(wire.kind()),
                  .sentence = Line(wire.sentence()),
                  .rounds = wire.rounds(),
                  .restarts = wire.restarts()};
  if (wire.has_root_cause()) verdict.root_cause = FromWire(wire.root_cause());
  return verdict;
}

}  // namespace

void ToWire(const JoinRequest& request, v1::Join* wire) {
  wire->set_run_id(request.run_id);
  ToWire(request.settings, wire->mutable_settings());
  ToWire(request.node, wire->mutable_node());
}

JoinRequest FromWire(const v1::Join& wire) {
  return {wire.run_id(), FromWire(wire.settings()), FromWire(wire.node())};
}

void ToWire(const WorkersOutcome& outcome, RoundNumber round, v1::WorkersExited* wire) {
  wire->set_round(round);
  if (!outcome.succeeded) {
    ToWire(outcome.failure.value_or(WorkerFailure{}), wire->mutable_failure());
  }
}

WorkersOutcome FromWire(const v1::WorkersExited& wire) {
  if (!wire.has_failure()) return {.succeeded = true};
  return {.succeeded = false, .failure = FromWire(wire.failure())};
}

void ToWire(const Directive& directive, v1::Directive* wire) {
  std::visit(DirectiveWriter{wire}, directive);
}

Directive FromWire(const v1::Directive& wire) {
  switch (wire.directive_case()) {
    case v1::Directive::kWelcome:
      return Welcome{FromMs(wire.welcome().keep_alive_ms()), FromMs(wire.welcome().lease_ms())};
    case v1::Directive::kWaiting:
      return Waiting{wire.waiting().round(), Line(wire.waiting().sentence()),
                     wire.waiting().spare()};
    case v1::Directive::kStart:
      return FromWire(wire.start());
    case v1::Directive::kStop:
      return Stop{wire.stop().round(), Line(wire.stop().reason())};
    case v1::Directive::kFenced:
      return Fenced{wire.fenced().round(), Line(wire.fenced().sentence())};
    case v1::Directive::kVerdict:
      return FromWire(wire.verdict());
    case v1::Directive::kRefused:
      return Refused{Line(wire.refused().sentence())};
    case v1::Directive::kNotice:
      return Notice{Line(wire.notice().sentence())};
    case v1::Directive::DIRECTIVE_NOT_SET:
      break;
  }
  return Waiting{kNoRound, "", false};
}

void ToWire(const JobSnapshot& snapshot, v1::JobDescription* wire) {
  wire->set_run_id(snapshot.run_id);
  wire->set_state(ToWire(snapshot.state));
  wire->set_round(snapshot.round);
  wire->set_sentence(Line(snapshot.sentence));
  ToWire(snapshot.settings, wire->mutable_settings());
  wire->set_restart_count(snapshot.restart_count);
  for (const NodeSnapshot& node : snapshot.nodes) {
    v1::NodeDescription* const out = wire->add_nodes();
    ToWire(node.node, out->mutable_node());
    out->set_state(ToWire(node.state));
    out->set_group_rank(node.group_rank);
    out->set_rank_reason(Line(node.rank_reason));
  }
}

}  // namespace muster::rendezvous
