#include "rendezvous/core/attendances.h"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {
namespace {

// Unless the agent says otherwise, beats come this many times in a lease: losing one or two costs
// nothing.
constexpr int kBeatsPerLease = 3;
constexpr int kFewestBeatsPerLease = 2;
// A connection that is gone says more than silence: after this part of the lease nobody waits for
// the agent to come back.
constexpr int kReattachPart = 3;

// Of a lease of 3 s a beat comes each second, and the agent is given up after 2.5 s of silence.
using std::chrono::milliseconds;
constexpr Duration kLateness[] = {milliseconds(1),    milliseconds(5),     milliseconds(10),
                                  milliseconds(25),   milliseconds(50),    milliseconds(100),
                                  milliseconds(250),  milliseconds(500),   milliseconds(1000),
                                  milliseconds(2500), milliseconds(10'000)};

}  // namespace

Duration KeepAliveFor(const JobSettings& settings) {
  if (settings.keep_alive == Duration::zero()) return settings.lease / kBeatsPerLease;
  return std::min(settings.keep_alive, settings.lease / kFewestBeatsPerLease);
}

Attendances::Attendances(Duration reattach_grace)
    : reattach_grace_(reattach_grace), lateness_(kLateness) {}

AgentAttendance& Attendances::Add(AgentAttendance attendance) {
  const AttendeeId id = attendance.id;
  if (attendance.agent != 0) connections_[attendance.agent] = id;
  if (!attendance.session.empty()) sessions_[attendance.session] = id;
  if (attendance.lease_ends) leases_.emplace(*attendance.lease_ends, id);
  return attendances_[id] = std::move(attendance);
}

void Attendances::Remove(const AgentAttendance& attendance) {
  if (attendance.lease_ends) leases_.erase({*attendance.lease_ends, attendance.id});
  connections_.erase(attendance.agent);
  sessions_.erase(attendance.session);
  attendances_.erase(attendance.id);
}

AgentAttendance* Attendances::Find(AttendeeId id) {
  const auto found = attendances_.find(id);
  return found == attendances_.end() ? nullptr : &found->second;
}

AgentAttendance* Attendances::FindByConnection(AgentId agent) {
  const auto found = connections_.find(agent);
  return found == connections_.end() ? nullptr : &attendances_.at(found->second);
}

AgentAttendance* Attendances::FindBySession(const SessionToken& session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &attendances_.at(found->second);
}

void Attendances::Connect(AgentAttendance& attendance, AgentId agent, std::uint64_t connection) {
  connections_.erase(attendance.agent);
  connections_[agent] = attendance.id;
  attendance.agent = agent;
  attendance.connection = connection;
  attendance.disconnected.clear();
  attendance.beaten.reset();
}

void Attendances::Disconnect(AgentAttendance& attendance, const std::string& why, TimePoint now) {
  connections_.erase(attendance.agent);
  attendance.agent = 0;
  attendance.disconnected = why;
  const TimePoint grace_ends = GraceEnds(attendance, now);
  if (grace_ends < attendance.lease_ends) SetLease(attendance, grace_ends);
}

void Attendances::SetLease(AgentAttendance& attendance, TimePoint ends) {
  if (attendance.lease_ends) leases_.erase({*attendance.lease_ends, attendance.id});
  attendance.lease_ends = ends;
  leases_.emplace(ends, attendance.id);
}

TimePoint Attendances::GraceEnds(const AgentAttendance& attendance, TimePoint now) const {
  return now + std::min(reattach_grace_, attendance.lease / kReattachPart);
}

void Attendances::RenewLease(AgentAttendance& attendance, TimePoint now) {
  attendance.heard = now;
  StartLease(attendance, now);
}

void Attendances::Beaten(AgentAttendance& attendance, TimePoint now) {
  const std::optional<TimePoint> before = std::exchange(attendance.beaten, now);
  if (!before || attendance.keep_alive == Duration::zero()) return;
  lateness_.Observe(std::max(now - *before - attendance.keep_alive, Duration::zero()));
}

LeaseFigures Attendances::Figures(TimePoint now) const {
  LeaseFigures figures{.count = leases_.size(), .lateness = &lateness_};
  for (const auto& [id, attendance] : attendances_) {
    if (attendance.lease_ends && attendance.agent == 0) ++figures.out_of_touch;
  }
  if (const auto ends = NextLeaseEnd()) figures.shortest = std::max(*ends - now, Duration::zero());
  return figures;
}

void Attendances::StartLease(AgentAttendance& attendance, TimePoint now) {
  if (attendance.lease == Duration::zero()) return;
  attendance.gone_by = now + attendance.lease;
  SetLease(attendance, now + SelfFenceAfter(attendance.lease));
}

void Attendances::BeginToServe(TimePoint now) {
  for (auto& [id, attendance] : attendances_) {
    const Duration deaf = now - std::exchange(attendance.heard, now);
    attendance.gone_by += deaf;
    if (attendance.lease_ends) SetLease(attendance, *attendance.lease_ends + deaf);
  }
}

void Attendances::BearHalt(TimePoint now) {
  for (auto& [id, attendance] : attendances_) {
    if (attendance.agent != 0) {
      StartLease(attendance, now);
    } else if (attendance.lease_ends < GraceEnds(attendance, now)) {
      SetLease(attendance, GraceEnds(attendance, now));
    }
  }
}

AgentAttendance* Attendances::FirstLost(TimePoint now) {
  if (leases_.empty() || leases_.begin()->first > now) return nullptr;
  return &attendances_.at(leases_.begin()->second);
}

std::optional<TimePoint> Attendances::NextLeaseEnd() const {
  if (leases_.empty()) return std::nullopt;
  return leases_.begin()->first;
}

}  // namespace muster::rendezvous
