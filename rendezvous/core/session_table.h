// Who attends: every agent's session, indexed by its number, its connection, its session token and
// the end of its lease.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/durations.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

class Job;

// One agent's session: from its first accepted Join until it leaves or is lost, over one connection
// after another. Between connections it is out of touch: `agent` is 0, and `disconnected` says why.
struct SessionEntry {
  AttendeeId id = 0;
  Job* job = nullptr;
  std::string node_id;
  SessionToken session;
  // As promised in Welcome. A lease of zero never ends.
  Duration keep_alive{};
  Duration lease{};
  // When the agent is lost unless it is heard from; nullopt: never.
  std::optional<TimePoint> lease_ends{};
  // When its workers are dead in any case.
  TimePoint gone_by{};
  // When the agent was last heard; for a recorded one, when this daemon began to serve.
  TimePoint heard{};
  // The time of its last keep-alive over this connection.
  std::optional<TimePoint> beaten{};
  // As reported by the agent; nullopt: what it reported to this daemon's last life is unknown.
  std::optional<std::uint64_t> log_bytes_lost{};
  std::uint64_t connection = 0;  // the highest connection number so far
  AgentId agent = 0;             // its connection; 0: none
  std::string disconnected{};
};

// Figures about leases, for display.
struct LeaseFigures {
  // Agents that have one, and how many of them are out of touch.
  std::size_t count = 0;
  std::size_t out_of_touch = 0;
  // Until the first of them is given up, unless it is heard from.
  std::optional<Duration> shortest;
  // How late keep-alives arrived, measured between successive ones on the same connection.
  const base::DurationHistogram* lateness = nullptr;
};

// How often an agent with these settings must be heard.
Duration KeepAliveFor(const JobSettings& settings);

// Part of a Coordinator, which owns it. It keeps the indices consistent; the Coordinator decides
// what the end of a session means. References are valid until the session is removed. Not
// thread-safe.
class SessionTable {
 public:
  // An agent whose connection broke has `reattach_grace` to come back over another, but only for
  // part of its lease.
  explicit SessionTable(Duration reattach_grace);

  // Adds a session, connected over the connection it names, if any.
  SessionEntry& Add(SessionEntry agent_session);
  void Remove(const SessionEntry& agent_session);

  // By number, by connection or by session token; null: not found.
  SessionEntry* Find(AttendeeId id);
  SessionEntry* FindByConnection(AgentId agent);
  SessionEntry* FindBySession(const SessionToken& session);
  // By number; the session must exist.
  const SessionEntry& at(AttendeeId id) const { return session_table_.at(id); }

  // The session now uses this connection, number `connection`, and no longer any other.
  void Connect(SessionEntry& agent_session, AgentId agent, std::uint64_t connection);
  // Its connection is gone; `why` is the cause: "its connection ended". The agent is lost when its
  // grace is over, or its lease if that ends first.
  void Disconnect(SessionEntry& agent_session, const std::string& why, TimePoint now);

  // The agent was heard from: its lease starts over.
  void RenewLease(SessionEntry& agent_session, TimePoint now);
  // That was a keep-alive.
  void Beaten(SessionEntry& agent_session, TimePoint now);
  // Agents can reach this daemon from now on; the grace of recorded sessions starts now.
  void BeginToServe(TimePoint now);
  // Agents can reach this daemon from now on; recorded sessions get their full time to come back.
  void BearHalt(TimePoint now);
  // The session whose lease ended first, if any has ended by `now`; null: none.
  SessionEntry* FirstLost(TimePoint now);
  std::optional<TimePoint> NextLeaseEnd() const;

  // Iterates over all sessions.
  LeaseFigures Figures(TimePoint now) const;

  bool empty() const { return session_table_.empty(); }
  std::size_t size() const { return session_table_.size(); }

 private:
  void StartLease(SessionEntry& agent_session, TimePoint now);
  void SetLease(SessionEntry& agent_session, TimePoint ends);
  void EndLease(const SessionEntry& agent_session);
  TimePoint GraceEnds(const SessionEntry& agent_session, TimePoint now) const;

  const Duration reattach_grace_;
  // Hash maps: one decision may look up thousands of sessions.
  std::unordered_map<AttendeeId, SessionEntry> session_table_;
  std::unordered_map<AgentId, AttendeeId> connections_;
  std::unordered_map<SessionToken, AttendeeId> sessions_;
  std::set<std::pair<TimePoint, AttendeeId>> leases_;
  base::DurationHistogram lateness_;
};

// Sessions that have ended, kept for as long as a late message of theirs may still arrive. An agent
// that heard no answer comes back over another connection and joins again with the same session.
// What it sent over the earlier connection may arrive even later, when that session has begun and
// ended. It must not start another session: a late Join would put an agent into its job that has
// already been told it has no place there, and its next attempt would be refused because its node
// is already present.
class EndedSessions {
 public:
  // The session ended at `now` and was last heard over `agent` (0: its connection had ended);
  // `connection` is the highest connection number it used.
  void Add(const SessionToken& session, AgentId agent, std::uint64_t connection, TimePoint now);

  // True if a Join of this session over this connection was sent before the session's end.
  bool SaidBefore(const SessionToken& session, AgentId agent, std::uint64_t connection) const;

 private:
  struct End {
    AgentId agent = 0;
    std::uint64_t connection = 0;
    TimePoint time{};
  };

  std::unordered_map<SessionToken, End> ends_;
  std::deque<std::pair<TimePoint, SessionToken>> in_order_;
};

// Objections to a Join: pure functions that return the sentence that refuses the request, or an
// empty string.

// To its names: those of the job and of the session.
std::string NameObjection(const JoinRequest& request);

// To a Join from an agent that already attends the job `run_id` as the node `node_id`.
std::string ReturnObjection(const JoinRequest& request, const std::string& run_id,
                            const std::string& node_id);

// To a newcomer's request, whatever job it is for: its settings, its node, and the two together.
// `max_nodes`: how many nodes a job may have.
std::string RequestObjection(const JoinRequest& request, int max_nodes);

// To joining a job with these settings: all nodes must ask for the same.
std::string SettingsDisagreement(const JobSettings& settings, const JoinRequest& request);

}  // namespace muster::rendezvous
