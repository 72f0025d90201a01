#include "rendezvous/wire/parts.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kMaxText = 4096;
constexpr int kMaxListed = 64;

constexpr std::pair<VerdictKind, v1::Verdict::Kind> kVerdictKindTable[] = {
    {VerdictKind::kSucceeded, v1::Verdict::SUCCEEDED},
    {VerdictKind::kWorkerFailed, v1::Verdict::WORKER_FAILED},
    {VerdictKind::kJoinTimeout, v1::Verdict::JOIN_TIMEOUT},
    {VerdictKind::kClosed, v1::Verdict::CLOSED}};
constexpr std::pair<NodeState, v1::NodeDescription::State> kNodeStates[] = {
    {NodeState::kJoined, v1::NodeDescription::JOINED},
    {NodeState::kStarting, v1::NodeDescription::STARTING},
    {NodeState::kRunning, v1::NodeDescription::RUNNING},
    {NodeState::kSucceeded, v1::NodeDescription::SUCCEEDED},
    {NodeState::kStopping, v1::NodeDescription::STOPPING},
    {NodeState::kSpare, v1::NodeDescription::SPARE}};
static_assert(std::size(kVerdictKindTable) == kVerdictKinds &&
              std::size(kVerdictKindTable) == v1::Verdict::Kind_ARRAYSIZE - 1);
static_assert(std::size(kNodeStates) == v1::NodeDescription::State_ARRAYSIZE - 1);

// The end of a multi-line text, made safe to show.
std::string Text(const std::string& text, std::size_t limit) {
  const std::size_t cut = text.size() > limit ? text.size() - limit : 0;
  return Printable(std::string_view(text).substr(cut), limit);
}

}  // namespace

std::int64_t ToMs(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

Duration FromMs(std::int64_t ms) {
  constexpr std::int64_t kHundredYears = std::int64_t{100} * 365 * 86'400 * 1000;
  return std::chrono::milliseconds(std::clamp(ms, -kHundredYears, kHundredYears));
}

std::uint16_t FromPort(std::uint32_t port) {
  return port <= std::numeric_limits<std::uint16_t>::max() ? static_cast<std::uint16_t>(port) : 0;
}

std::string Line(std::string_view text) {
  return OneLine(text, kMaxText);
}

std::string Name(const std::string& text) {
  return CheckName("", text).ok() ? text : Line(text);
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
  wire->set_scale_up(settings.scale_up == ScaleUp::kNow ? v1::JobSettings::NOW
                                                        : v1::JobSettings::NEXT_RESTART);
  wire->set_restart_window_ms(ToMs(settings.restart.window));
  wire->set_restart_delay_ms(ToMs(settings.restart.delay));
  wire->set_longest_restart_delay_ms(ToMs(settings.restart.longest_delay));
  wire->set_no_progress_limit(settings.restart.no_progress_limit);
  wire->set_store_tunnel(settings.store_tunnel);
  wire->set_straggler_threshold(settings.straggler_threshold);
}

JobSettings FromWire(const v1::JobSettings& wire) {
  return {.min_nodes = wire.min_nodes(),
          .max_nodes = wire.max_nodes(),
          .last_call = FromMs(wire.last_call_ms()),
          .join_timeout = FromMs(wire.join_timeout_ms()),
          // An agent across a network always has a lease.
          .lease = FromMs(std::max<std::int64_t>(wire.lease_ms(), 1)),
          .keep_alive = FromMs(wire.keep_alive_ms()),
          .max_restarts = wire.max_restarts(),
          .exact_ranks = wire.exact_ranks(),
          .store_tunnel = wire.store_tunnel(),
          .scale_up = wire.scale_up() == v1::JobSettings::NEXT_RESTART ? ScaleUp::kNextRestart
                                                                       : ScaleUp::kNow,
          .restart = {.window = FromMs(wire.restart_window_ms()),
                      .delay = FromMs(wire.restart_delay_ms()),
                      .longest_delay = FromMs(wire.longest_restart_delay_ms()),
                      .no_progress_limit = wire.no_progress_limit()},
          .straggler_threshold = wire.straggler_threshold()};
}

void ToWire(const SpokenVersions& speaks, v1::SpokenVersions* wire) {
  wire->set_oldest(static_cast<std::uint32_t>(speaks.oldest));
  wire->set_newest(static_cast<std::uint32_t>(speaks.newest));
}

int Version(std::uint32_t wire) {
  return static_cast<int>(std::min<std::uint32_t>(wire, std::numeric_limits<int>::max()));
}

SpokenVersions FromWire(const v1::SpokenVersions& wire) {
  if (wire.newest() == 0) return kUntold;
  return {Version(wire.oldest()), Version(wire.newest())};
}

void ToWire(const NodeInfo& node, v1::NodeInfo* wire) {
  wire->set_node_id(node.node_id);
  wire->set_host(Line(node.host));
  wire->set_address(Line(node.address));
  wire->set_master_port(node.master_port);
  wire->set_slots(node.slots);
  if (node.rank_hint) wire->set_rank_hint(*node.rank_hint);
  wire->set_role(Name(node.role));
  for (const std::string& label : node.topology) wire->add_topology(Line(label));
  for (const std::string& device : node.devices) wire->add_devices(Line(device));
  for (const std::string& address : node.addresses) wire->add_addresses(Line(address));
  wire->set_serves_store(node.serves_store);
  wire->set_delivers_logs(node.delivers_logs);
}

NodeInfo FromWire(const v1::NodeInfo& wire) {
  NodeInfo node{.node_id = wire.node_id(),
                .host = Line(wire.host()),
                .address = Line(wire.address()),
                .master_port = FromPort(wire.master_port()),
                .serves_store = wire.serves_store(),
                .slots = wire.slots(),
                .role = Name(wire.role()),
                .delivers_logs = wire.delivers_logs()};
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
  wire->set_node_id(Line(failure.node_id));
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
  wire->set_before_first_beat(failure.before_first_beat);
  wire->set_final(failure.final);
  wire->set_operations(Line(failure.operations));
}

WorkerFailure FromWire(const v1::WorkerFailure& wire) {
  return {.rank = wire.rank(),
          .local_rank = wire.local_rank(),
          .node_id = Line(wire.node_id()),
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
          .error_time = wire.error_time(),
          .operations = Line(wire.operations()),
          .before_first_beat = wire.before_first_beat(),
          .final = wire.final()};
}

void ToWire(const Verdict& verdict, v1::Verdict* wire) {
  wire->set_kind(ToWire(verdict.kind));
  wire->set_sentence(Line(verdict.sentence));
  if (verdict.root_cause) ToWire(*verdict.root_cause, wire->mutable_root_cause());
  wire->set_rounds(verdict.rounds);
  wire->set_restarts(verdict.restarts);
}

Verdict FromWire(const v1::Verdict& wire) {
  Verdict verdict{.kind = FromWire(wire.kind()),
                  .sentence = Line(wire.sentence()),
                  .rounds = wire.rounds(),
                  .restarts = wire.restarts()};
  if (wire.has_root_cause()) verdict.root_cause = FromWire(wire.root_cause());
  return verdict;
}

v1::Verdict::Kind ToWire(VerdictKind kind) {
  return OnWire(kVerdictKindTable, kind);
}

VerdictKind FromWire(v1::Verdict::Kind kind) {
  // A newer daemon's reason: the job has ended, and not with success.
  return FromWire(kVerdictKindTable, kind, VerdictKind::kClosed);
}

static_assert(kRoundEnds == v1::RoundDescription::End_ARRAYSIZE - 1);

void ToWire(const RoundSnapshot& round, v1::RoundDescription* wire) {
  wire->set_number(round.number);
  wire->set_opened_ago_ms(ToMs(round.opened_ago));
  if (round.gathered) wire->set_gathered_ms(ToMs(*round.gathered));
  wire->set_ran_ms(ToMs(round.ran));
  wire->set_nodes(round.nodes);
  wire->set_workers(round.workers);
  if (round.failed_rank) wire->set_failed_rank(*round.failed_rank);
  if (!round.end) return;
  wire->set_end(static_cast<v1::RoundDescription::End>(static_cast<int>(*round.end) + 1));
  wire->set_reason(Line(round.reason));
}

RoundSnapshot FromWire(const v1::RoundDescription& wire) {
  RoundSnapshot round{.number = wire.number(),
                      .opened_ago = FromMs(wire.opened_ago_ms()),
                      .ran = FromMs(wire.ran_ms()),
                      .nodes = wire.nodes(),
                      .workers = wire.workers(),
                      .reason = Line(wire.reason())};
  if (wire.has_failed_rank()) round.failed_rank = wire.failed_rank();
  if (wire.has_gathered_ms()) round.gathered = FromMs(wire.gathered_ms());
  if (wire.end() > 0 && wire.end() <= kRoundEnds) {
    round.end = static_cast<RoundEnd>(static_cast<int>(wire.end()) - 1);
  }
  return round;
}

v1::NodeDescription::State ToWire(NodeState state) {
  return OnWire(kNodeStates, state);
}

NodeState FromWire(v1::NodeDescription::State state) {
  return FromWire(kNodeStates, state, NodeState::kJoined);
}

}  // namespace muster::rendezvous
