// Who attends: every agent's attendance, found by its number, its connection, its session or the
// end of its lease.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/duration_histogram.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

class Job;

// One agent's attendance: from its first accepted Join until it leaves or is lost, over one
// connection after another. Between two of them it is out of touch: `agent` is 0, and
// `disconnected` says why.
struct AgentAttendance {
  AttendeeId id = 0;
  Job* job = nullptr;
  std::string node_id;
  SessionToken session;
  // What it was promised (Welcome). A lease of zero never ends.
  Duration keep_alive{};
  Duration lease{};
  // When it is lost unless something is heard from it; nullopt: never.
  std::optional<TimePoint> lease_ends{};
  // When its workers are dead, whatever became of it.
  TimePoint gone_by{};
  // When something was heard from it last; for one that was recorded, when this daemon began to
  // serve.
  TimePoint heard{};
  // When a beat was, over this connection.
  std::optional<TimePoint> beaten{};
  // As it has said; nullopt: what it said to this daemon's last life is not known.
  std::optional<std::uint64_t> log_bytes_lost{};
  std::uint64_t connection = 0;  // the greatest number it came with
  AgentId agent = 0;             // its connection; 0: none
  std::string disconnected{};
};

// What is shown of leases.
struct LeaseFigures {
  // Agents that have one, and those of them whose connection is broken.
  std::size_t count = 0;
  std::size_t out_of_touch = 0;
  // Until the first of them is given up, unless something is heard from it.
  std::optional<Duration> shortest;
  // How much later than agreed beats came, one after the other over the same connection.
  const base::DurationHistogram* lateness = nullptr;
};

// How often an agent with these settings must be heard.
Duration KeepAliveFor(const JobSettings& settings);

// Part of a Coordinator, which owns it. It keeps the indices consistent; the Coordinator decides
// what follows from an end. References are valid until the attendance is removed. Not thread-safe.
class Attendances {
 public:
  // An agent whose connection broke has `reattach_grace` to come back over another, but no more
  // than a part of its lease.
  explicit Attendances(Duration reattach_grace);

  // Adds one, connected over the connection that it names, if any.
  AgentAttendance& Add(AgentAttendance attendance);
  void Remove(const AgentAttendance& attendance);

  // The one with this number, over this connection, or of this session; null: there is none.
  AgentAttendance* Find(AttendeeId id);
  AgentAttendance* FindByConnection(AgentId agent);
  AgentAttendance* FindBySession(const SessionToken& session);
  // The one with this number, which must attend.
  const AgentAttendance& at(AttendeeId id) const { return attendances_.at(id); }

  // It now comes over this connection, number `connection` of its session, and no longer over
  // another.
  void Connect(AgentAttendance& attendance, AgentId agent, std::uint64_t connection);
  // Its connection is gone; `why` is the cause, "its connection ended". It is lost when its grace
  // is over, or its lease if that ends first.
  void Disconnect(AgentAttendance& attendance, const std::string& why, TimePoint now);

  // Something was heard from it: its lease starts afresh.
  void RenewLease(AgentAttendance& attendance, TimePoint now);
  // That was a beat.
  void Beaten(AgentAttendance& attendance, TimePoint now);
  // Agents can reach this daemon from now on, and those that were recorded have all the time that
  // they were given to come back.
  void BeginToServe(TimePoint now);
  // This process stood still and was deaf: all leases start afresh. For an agent that is out of
  // touch, from which nothing but its coming back could have been heard, its grace does.
  void BearHalt(TimePoint now);
  // The one whose lease ended first, if any has ended by `now`; null: none has.
  AgentAttendance* FirstLost(TimePoint now);
  std::optional<TimePoint> NextLeaseEnd() const;

  // Goes through all of them.
  LeaseFigures Figures(TimePoint now) const;

  bool empty() const { return attendances_.empty(); }
  std::size_t size() const { return attendances_.size(); }

 private:
  void StartLease(AgentAttendance& attendance, TimePoint now);
  void SetLease(AgentAttendance& attendance, TimePoint ends);
  TimePoint GraceEnds(const AgentAttendance& attendance, TimePoint now) const;

  const Duration reattach_grace_;
  // These are found by thousands in one decision.
  std::unordered_map<AttendeeId, AgentAttendance> attendances_;
  std::unordered_map<AgentId, AttendeeId> connections_;
  std::unordered_map<SessionToken, AttendeeId> sessions_;
  std::set<std::pair<TimePoint, AttendeeId>> leases_;
  base::DurationHistogram lateness_;
};

}  // namespace muster::rendezvous
