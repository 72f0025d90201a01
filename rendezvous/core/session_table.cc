#include "rendezvous/core/session_table.h"

#include <algorithm>
#include <chrono>
#include <climits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/check.h"
#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

// Unless the agent asks otherwise, there are this many keep-alives in a lease: losing one or two is
// harmless.
constexpr int kBeatsPerLease = 3;
constexpr int kFewestBeatsPerLease = 2;
// A broken connection is stronger evidence than silence: after this fraction of the lease the agent
// is given up.
constexpr int kReattachPart = 3;

// With a lease of 3 s a keep-alive comes each second, and the agent is given up after 2.5 s.
using std::chrono::milliseconds;
constexpr Duration kLateness[] = {milliseconds(1),    milliseconds(5),     milliseconds(10),
                                  milliseconds(25),   milliseconds(50),    milliseconds(100),
                                  milliseconds(250),  milliseconds(500),   milliseconds(1000),
                                  milliseconds(2500), milliseconds(10'000)};

// Linux keeps sending what a process left in a closed socket for about two minutes
// (tcp_orphan_retries in tcp(7)); then the connection is gone.
constexpr Duration kLatest = std::chrono::minutes(5);

constexpr Duration kShortestLease = std::chrono::milliseconds(100);
// A lost node can keep the others waiting at most this long.
constexpr Duration kLongestLease = std::chrono::hours(1);
constexpr Duration kLongestDelay = std::chrono::hours(24);
constexpr std::size_t kLongestSession = 64;

std::string SettingsObjection(const JobSettings& settings, int max_nodes) {
  if (settings.min_nodes < 1 || settings.max_nodes < settings.min_nodes ||
      settings.max_nodes > max_nodes) {
    return absl::StrCat("the number of nodes ", settings.min_nodes, ":", settings.max_nodes,
                        " is not 1 <= min <= max <= ", max_nodes);
  }
  if (settings.max_restarts < 0) return "the number of restarts is negative";
  if (settings.exact_ranks && settings.min_nodes != settings.max_nodes) {
    return "fixed node ranks need a fixed number of nodes, not MIN:MAX";
  }
  if (settings.join_timeout <= Duration::zero() || settings.last_call < Duration::zero() ||
      settings.keep_alive < Duration::zero() || settings.lease < Duration::zero()) {
    return "a timeout is not positive";
  }
  const RestartPolicy& restart = settings.restart;
  if (restart.window < Duration::zero() || restart.delay < Duration::zero() ||
      restart.longest_delay < restart.delay || restart.longest_delay > kLongestDelay ||
      restart.no_progress_limit < 0) {
    return "the restart policy has a negative number, or a delay that is too long";
  }
  if (!(settings.straggler_threshold >= 0)) return "the threshold for stragglers is not from 0";
  if (settings.lease != Duration::zero() && settings.lease < kShortestLease) {
    return absl::StrCat("the lease of ", base::Seconds(settings.lease), " is shorter than ",
                        base::Seconds(kShortestLease));
  }
  if (settings.lease > kLongestLease) {
    return absl::StrCat("the lease of ", base::Seconds(settings.lease), " is longer than ",
                        base::Seconds(kLongestLease),
                        ", for which a lost node would hold up the others");
  }
  return "";
}

std::string NodeCounts(const JobSettings& settings) {
  if (settings.min_nodes == settings.max_nodes) return absl::StrCat(settings.max_nodes);
  return absl::StrCat(settings.min_nodes, ":", settings.max_nodes);
}

std::string NodeObjection(const NodeInfo& node) {
  if (const absl::Status status = CheckName("node id", node.node_id); !status.ok()) {
    return std::string(status.message());
  }
  if (node.slots < 1 || node.slots > 65'536) {
    return absl::StrCat(node.slots, " workers on a node is not between 1 and 65536");
  }
  if (node.master_port == 0) return "the node holds no port for the workers' store";
  if (node.rank_hint && *node.rank_hint < 0) return "the node rank is negative";
  return "";
}

}  // namespace

Duration KeepAliveFor(const JobSettings& settings) {
  if (settings.keep_alive == Duration::zero()) return settings.lease / kBeatsPerLease;
  return std::min(settings.keep_alive, settings.lease / kFewestBeatsPerLease);
}

SessionTable::SessionTable(Duration reattach_grace)
    : reattach_grace_(reattach_grace), lateness_(kLateness) {}

SessionEntry& SessionTable::Add(SessionEntry agent_session) {
  const AttendeeId id = agent_session.id;
  MUSTER_CHECK(id != 0 && !session_table_.contains(id));
  if (agent_session.agent != 0) {
    MUSTER_CHECK(connections_.emplace(agent_session.agent, id).second);
  }
  if (!agent_session.session.empty()) sessions_[agent_session.session] = id;
  if (agent_session.lease_ends) leases_.emplace(*agent_session.lease_ends, id);
  return session_table_[id] = std::move(agent_session);
}

void SessionTable::Remove(const SessionEntry& agent_session) {
  EndLease(agent_session);
  connections_.erase(agent_session.agent);
  sessions_.erase(agent_session.session);
  MUSTER_CHECK(session_table_.erase(agent_session.id) == 1);
}

SessionEntry* SessionTable::Find(AttendeeId id) {
  const auto found = session_table_.find(id);
  return found == session_table_.end() ? nullptr : &found->second;
}

SessionEntry* SessionTable::FindByConnection(AgentId agent) {
  const auto found = connections_.find(agent);
  return found == connections_.end() ? nullptr : &session_table_.at(found->second);
}

SessionEntry* SessionTable::FindBySession(const SessionToken& session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &session_table_.at(found->second);
}

void SessionTable::Connect(SessionEntry& agent_session, AgentId agent, std::uint64_t connection) {
  connections_.erase(agent_session.agent);
  MUSTER_CHECK(agent != 0 && connections_.emplace(agent, agent_session.id).second);
  agent_session.agent = agent;
  agent_session.connection = connection;
  agent_session.disconnected.clear();
  agent_session.beaten.reset();
}

void SessionTable::Disconnect(SessionEntry& agent_session, const std::string& why, TimePoint now) {
  connections_.erase(agent_session.agent);
  agent_session.agent = 0;
  agent_session.disconnected = why;
  const TimePoint grace_ends = GraceEnds(agent_session, now);
  if (grace_ends < agent_session.lease_ends) SetLease(agent_session, grace_ends);
}

void SessionTable::SetLease(SessionEntry& agent_session, TimePoint ends) {
  EndLease(agent_session);
  agent_session.lease_ends = ends;
  leases_.emplace(ends, agent_session.id);
}

// Each that has a lease has one place in their order.
void SessionTable::EndLease(const SessionEntry& agent_session) {
  if (!agent_session.lease_ends) return;
  MUSTER_CHECK(leases_.erase({*agent_session.lease_ends, agent_session.id}) == 1);
}

TimePoint SessionTable::GraceEnds(const SessionEntry& agent_session, TimePoint now) const {
  return now + std::min(reattach_grace_, agent_session.lease / kReattachPart);
}

void SessionTable::RenewLease(SessionEntry& agent_session, TimePoint now) {
  agent_session.heard = now;
  StartLease(agent_session, now);
}

void SessionTable::Beaten(SessionEntry& agent_session, TimePoint now) {
  const std::optional<TimePoint> before = std::exchange(agent_session.beaten, now);
  if (!before || agent_session.keep_alive == Duration::zero()) return;
  lateness_.Observe(std::max(now - *before - agent_session.keep_alive, Duration::zero()));
}

LeaseFigures SessionTable::Figures(TimePoint now) const {
  LeaseFigures figures{.count = leases_.size(), .lateness = &lateness_};
  for (const auto& [id, agent_session] : session_table_) {
    if (agent_session.lease_ends && agent_session.agent == 0) ++figures.out_of_touch;
  }
  if (const auto ends = NextLeaseEnd()) figures.shortest = std::max(*ends - now, Duration::zero());
  return figures;
}

void SessionTable::StartLease(SessionEntry& agent_session, TimePoint now) {
  if (agent_session.lease == Duration::zero()) return;
  agent_session.gone_by = now + agent_session.lease;
  SetLease(agent_session, now + SelfFenceAfter(agent_session.lease));
}

void SessionTable::BeginToServe(TimePoint now) {
  for (auto& [id, agent_session] : session_table_) {
    const Duration deaf = now - std::exchange(agent_session.heard, now);
    agent_session.gone_by += deaf;
    if (agent_session.lease_ends) SetLease(agent_session, *agent_session.lease_ends + deaf);
  }
}

void SessionTable::BearHalt(TimePoint now) {
  for (auto& [id, agent_session] : session_table_) {
    if (agent_session.agent != 0) {
      StartLease(agent_session, now);
    } else if (agent_session.lease_ends < GraceEnds(agent_session, now)) {
      SetLease(agent_session, GraceEnds(agent_session, now));
    }
  }
}

SessionEntry* SessionTable::FirstLost(TimePoint now) {
  if (leases_.empty() || leases_.begin()->first > now) return nullptr;
  return &session_table_.at(leases_.begin()->second);
}

std::optional<TimePoint> SessionTable::NextLeaseEnd() const {
  if (leases_.empty()) return std::nullopt;
  return leases_.begin()->first;
}

void EndedSessions::Add(const SessionToken& session, AgentId agent, std::uint64_t connection,
                        TimePoint now) {
  while (!in_order_.empty() && in_order_.front().first + kLatest < now) {
    const auto& [time, oldest] = in_order_.front();
    const auto end = ends_.find(oldest);
    // Unless the session has ended once more since.
    if (end != ends_.end() && end->second.time == time) ends_.erase(end);
    in_order_.pop_front();
  }
  if (session.empty()) return;
  ends_[session] = {agent, connection, now};
  in_order_.emplace_back(now, session);
}

bool EndedSessions::SaidBefore(const SessionToken& session, AgentId agent,
                               std::uint64_t connection) const {
  const auto end = ends_.find(session);
  if (end == ends_.end()) return false;
  return connection < end->second.connection || agent == end->second.agent;
}

std::string NameObjection(const JoinRequest& request) {
  if (const absl::Status status = CheckName("run id", request.run_id); !status.ok()) {
    return std::string(status.message());
  }
  if (request.session.size() > kLongestSession) return "the session token is too long";
  return "";
}

std::string ReturnObjection(const JoinRequest& request, const std::string& run_id,
                            const std::string& node_id) {
  if (request.run_id == run_id && request.node.node_id == node_id) {
    return NodeObjection(request.node);
  }
  return absl::StrCat("an agent of job '", run_id, "' as node ", node_id, " cannot join job '",
                      request.run_id, "' as node ", request.node.node_id);
}

std::string RequestObjection(const JoinRequest& request, int max_nodes) {
  const JobSettings& settings = request.settings;
  const NodeInfo& node = request.node;
  if (std::string objection = SettingsObjection(settings, max_nodes); !objection.empty()) {
    return objection;
  }
  if (std::string objection = NodeObjection(node); !objection.empty()) return objection;
  if (settings.exact_ranks && node.rank_hint.value_or(INT_MAX) >= settings.max_nodes) {
    return absl::StrCat("node ", node.host, " has no node rank below ", settings.max_nodes,
                        ", the number of nodes");
  }
  if (node.slots > INT_MAX / settings.max_nodes) {
    return absl::StrCat(node.slots, " workers on each of ", settings.max_nodes,
                        " nodes are more than ", INT_MAX, " in all");
  }
  return "";
}

std::string SettingsDisagreement(const JobSettings& settings, const JoinRequest& request) {
  if (settings.exact_ranks != request.settings.exact_ranks) {
    return absl::StrCat("node ", request.node.host, settings.exact_ranks ? " has no" : " has a",
                        " fixed node rank, unlike the other nodes of job '", request.run_id,
                        "'; give the same --rdzv-backend and addresses on every node");
  }
  if (settings.store_tunnel != request.settings.store_tunnel) {
    return absl::StrCat("node ", request.node.host, " asks for a workers' store ",
                        settings.store_tunnel ? "without" : "with", " a tunnel, unlike job '",
                        request.run_id, "'; give the same --worker-store on every node");
  }
  if (settings.min_nodes != request.settings.min_nodes ||
      settings.max_nodes != request.settings.max_nodes) {
    return absl::StrCat("node ", request.node.host,
                        " asks for --nnodes=", NodeCounts(request.settings), ", but job '",
                        request.run_id, "' was started with --nnodes=", NodeCounts(settings),
                        "; use the same on every node, or another --rdzv-id for another job");
  }
  return "";
}

}  // namespace muster::rendezvous
