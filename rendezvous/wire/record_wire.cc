#include "rendezvous/wire/wire.h"

#include <set>

#include "proto/journal.pb.h"
#include "rendezvous/wire/parts.h"

namespace muster::rendezvous {
namespace {

namespace journal = muster::journal::v1;
// In addition to those in parts.h.
using rendezvous::FromWire;
using rendezvous::ToWire;

void ToWire(const RoundRecord& round, journal::RoundRecord* wire) {
  wire->set_number(round.number);
  wire->set_complete(round.complete);
  wire->set_anyone_returned(round.anyone_returned);
  wire->mutable_previous_ranks()->insert(round.previous_ranks->begin(),
                                         round.previous_ranks->end());
  for (const ReturningRecord& node : round.outstanding) {
    journal::Returning* const out = wire->add_outstanding();
    out->set_node_id(node.node_id);
    out->set_host(node.host);
    out->set_group_rank(node.group_rank);
  }
  for (const SharedNode& node : round.joined) ToWire(node, wire->add_joined());
  for (const SharedNode& node : round.spares) ToWire(node, wire->add_spares());
  for (const Placement& member : round.members) {
    journal::Placement* const out = wire->add_members();
    ToWire(member.node, out->mutable_node());
    out->set_group_rank(member.group_rank);
    out->set_reason(member.reason);
  }
  wire->set_gives_up_in_ms(ToMs(round.gives_up_in));
  if (round.last_call_in) wire->set_last_call_in_ms(ToMs(*round.last_call_in));
  if (round.held_for) wire->set_held_for_ms(ToMs(*round.held_for));
}

RoundRecord FromWire(const journal::RoundRecord& wire) {
  RoundRecord round{
      .number = wire.number(),
      .complete = wire.complete(),
      .anyone_returned = wire.anyone_returned(),
      .previous_ranks = KeyMap<int>(wire.previous_ranks().begin(), wire.previous_ranks().end()),
      .gives_up_in = FromMs(wire.gives_up_in_ms())};
  for (const journal::Returning& node : wire.outstanding()) {
    round.outstanding.push_back({node.node_id(), node.host(), node.group_rank()});
  }
  for (const v1::NodeInfo& node : wire.joined()) round.joined.push_back(FromWire(node));
  for (const v1::NodeInfo& node : wire.spares()) round.spares.push_back(FromWire(node));
  for (const journal::Placement& member : wire.members()) {
    round.members.push_back({FromWire(member.node()), member.group_rank(), member.reason()});
  }
  if (wire.has_last_call_in_ms()) round.last_call_in = FromMs(wire.last_call_in_ms());
  if (wire.has_held_for_ms()) round.held_for = FromMs(wire.held_for_ms());
  return round;
}

void ToWire(const AttendeeRecord& attendee, journal::AttendeeRecord* wire) {
  wire->set_id(attendee.id);
  ToWire(attendee.node, wire->mutable_node());
  wire->set_state(ToWire(attendee.state));
  wire->set_group_rank(attendee.group_rank);
  wire->set_leaving(attendee.leaving);
  wire->set_ran(attendee.ran);
  wire->set_session(attendee.session);
  wire->set_lease_ms(ToMs(attendee.lease));
  wire->set_keep_alive_ms(ToMs(attendee.keep_alive));
}

AttendeeRecord FromWire(const journal::AttendeeRecord& wire) {
  return {.id = wire.id(),
          .node = FromWire(wire.node()),
          .state = FromWire(wire.state()),
          .group_rank = wire.group_rank(),
          .leaving = wire.leaving(),
          .ran = wire.ran(),
          .session = wire.session(),
          .lease = FromMs(wire.lease_ms()),
          .keep_alive = FromMs(wire.keep_alive_ms())};
}

void ToWire(const HistorySnapshot& history, journal::History* wire) {
  wire->set_age_ms(ToMs(history.age));
  if (history.ended_ago) wire->set_ended_ago_ms(ToMs(*history.ended_ago));
  for (const RoundSnapshot& round : history.rounds) ToWire(round, wire->add_rounds());
  wire->set_true_at_ms(history.true_at_ms);
  wire->set_productive_ms(ToMs(history.productive));
}

HistorySnapshot FromWire(const journal::History& wire) {
  HistorySnapshot history{.age = FromMs(wire.age_ms()),
                          .productive = FromMs(wire.productive_ms()),
                          .ended_ago = {},
                          .rounds = {}};
  if (wire.has_ended_ago_ms()) history.ended_ago = FromMs(wire.ended_ago_ms());
  for (const v1::RoundDescription& round : wire.rounds()) history.rounds.push_back(FromWire(round));
  history.true_at_ms = wire.true_at_ms();
  return history;
}

// Whether a round can resume from the record: a bad one would otherwise crash the whole daemon,
// with all its jobs.
bool CanGoOn(const JobRecord& record) {
  // A round with min_nodes 0 would be complete without any node.
  if (record.settings.min_nodes < 1 || record.settings.max_nodes < record.settings.min_nodes) {
    return false;
  }
  if (!record.round.complete) return true;
  std::set<std::string> attending;
  for (const AttendeeRecord& attendee : record.attendees) attending.insert(attendee.node->node_id);
  int rank = 0;
  for (const Placement& member : record.round.members) {
    if (member.group_rank != rank++) return false;
    if (!record.started && !attending.contains(member.node->node_id)) return false;
  }
  return rank > 0;
}

}  // namespace

std::string ToBytes(const JobRecord& record) {
  journal::JobRecord wire;
  wire.set_run_id(record.run_id);
  wire.set_incarnation(record.incarnation);
  ToWire(record.settings, wire.mutable_settings());
  ToWire(record.round, wire.mutable_round());
  wire.set_started(record.started);
  for (const int rank : record.succeeded) wire.add_succeeded(rank);
  wire.set_rounds_run(record.rounds_run);
  wire.set_restarts(record.restarts);
  for (const Duration age : record.restart_ages) wire.add_restart_ages_ms(ToMs(age));
  wire.mutable_repeated_failure()->set_rank(record.repeated.rank);
  wire.mutable_repeated_failure()->set_what(record.repeated.what);
  wire.mutable_repeated_failure()->set_times(record.repeated.times);
  wire.set_over_reason(record.over_reason);
  if (record.verdict) ToWire(*record.verdict, wire.mutable_verdict());
  wire.set_workers_gone_in_ms(ToMs(record.workers_gone_in));
  for (const std::string& node_id : record.lost) wire.add_lost(node_id);
  for (const AttendeeRecord& attendee : record.attendees) ToWire(attendee, wire.add_attendees());
  ToWire(record.history, wire.mutable_history());
  return wire.SerializeAsString();
}

absl::StatusOr<JobRecord> RecordFromBytes(std::string_view bytes) {
  journal::JobRecord wire;
  if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("the record of a job cannot be read");
  }
  JobRecord record{.run_id = wire.run_id(),
                   .incarnation = wire.incarnation(),
                   .settings = FromWire(wire.settings()),
                   .round = FromWire(wire.round()),
                   .started = wire.started(),
                   .succeeded = {wire.succeeded().begin(), wire.succeeded().end()},
                   .rounds_run = wire.rounds_run(),
                   .restarts = wire.restarts(),
                   .repeated = {wire.repeated_failure().rank(), wire.repeated_failure().what(),
                                wire.repeated_failure().times()},
                   .over_reason = wire.over_reason(),
                   .workers_gone_in = FromMs(wire.workers_gone_in_ms()),
                   .lost = {wire.lost().begin(), wire.lost().end()},
                   .history = FromWire(wire.history())};
  for (const std::int64_t age : wire.restart_ages_ms()) record.restart_ages.push_back(FromMs(age));
  if (wire.has_verdict()) record.verdict = FromWire(wire.verdict());
  for (const journal::AttendeeRecord& attendee : wire.attendees()) {
    record.attendees.push_back(FromWire(attendee));
  }
  if (!CanGoOn(record)) {
    return absl::DataLossError(
        "the record of a job contradicts itself: its numbers of nodes are impossible, or its "
        "complete round does not match its members");
  }
  return record;
}

}  // namespace muster::rendezvous
