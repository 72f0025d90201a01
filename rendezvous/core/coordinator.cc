#include "rendezvous/core/coordinator.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/names.h"
#include "rendezvous/core/phrases.h"

namespace muster::rendezvous {
namespace {

// Unless the agent says otherwise, beats come this many times in a lease: losing one or two costs
// nothing.
constexpr int kBeatsPerLease = 5;
constexpr int kFewestBeatsPerLease = 2;
constexpr Duration kShortestLease = std::chrono::milliseconds(100);
// A Tick later than this did not wait for its turn: the whole process stood still.
constexpr Duration kHalt = std::chrono::milliseconds(250);

std::string SettingsObjection(const JobSettings& settings, int max_nodes) {
  if (settings.min_nodes < 1 || settings.max_nodes < settings.min_nodes ||
      settings.max_nodes > max_nodes) {
    return absl::StrCat("the number of nodes ", settings.min_nodes, ":", settings.max_nodes,
                        " is not 1 <= min <= max <= ", max_nodes);
  }
  if (settings.max_restarts < 0) return "the number of restarts is negative";
  if (settings.exact_ranks && settings.min_nodes != settings.max_nodes) {
    return "nodes with ranks of their own cannot come and go";
  }
  if (settings.join_timeout <= Duration::zero() || settings.last_call < Duration::zero() ||
      settings.keep_alive < Duration::zero()) {
    return "a timeout is not positive";
  }
  if (settings.lease != Duration::zero() && settings.lease < kShortestLease) {
    return absl::StrCat("the lease of ", Seconds(settings.lease), " is shorter than ",
                        Seconds(kShortestLease));
  }
  return "";
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

Duration KeepAliveFor(const JobSettings& settings) {
  if (settings.keep_alive == Duration::zero()) return settings.lease / kBeatsPerLease;
  return std::min(settings.keep_alive, settings.lease / kFewestBeatsPerLease);
}

std::string NodeCounts(const JobSettings& settings) {
  if (settings.min_nodes == settings.max_nodes) return absl::StrCat(settings.max_nodes);
  return absl::StrCat(settings.min_nodes, ":", settings.max_nodes);
}

}  // namespace

void Coordinator::Join(AgentId agent, const JoinRequest& request, TimePoint now) {
  std::string objection = Objection(agent, request);
  const auto job_it = jobs_.find(request.run_id);
  if (objection.empty() && !attendances_.contains(agent) && job_it != jobs_.end()) {
    objection = job_it->second->ContestRank(request.node, now);
  }
  if (!objection.empty()) {
    outbox_.directives.push_back({agent, Refused{objection}});
    if (attendances_.contains(agent)) Remove(agent, "broke the protocol: " + objection, now);
    return;
  }
  auto found = attendances_.find(agent);
  if (found == attendances_.end()) {
    std::unique_ptr<Job>& job = jobs_[request.run_id];
    if (job == nullptr) {
      job = std::make_unique<Job>(request.run_id, request.settings, now, &outbox_);
    }
    found = attendances_.emplace(agent, Attendance{job.get(), request.node.node_id}).first;
    found->second.lease = request.settings.lease;
    outbox_.directives.push_back(
        {agent, Welcome{KeepAliveFor(request.settings), request.settings.lease}});
  }
  RenewLease(agent, found->second, now);
  found->second.job->Join(agent, request.node, now);
}

std::string Coordinator::Objection(AgentId agent, const JoinRequest& request) const {
  if (const absl::Status status = CheckName("run id", request.run_id); !status.ok()) {
    return std::string(status.message());
  }
  if (const auto found = attendances_.find(agent); found != attendances_.end()) {
    const Attendance& attendance = found->second;
    if (attendance.job->run_id() != request.run_id || attendance.node_id != request.node.node_id) {
      return absl::StrCat("an agent of job '", attendance.job->run_id(), "' as node ",
                          attendance.node_id, " cannot join job '", request.run_id, "' as node ",
                          request.node.node_id);
    }
    return NodeObjection(request.node);
  }
  if (!draining_.empty()) {
    return absl::StrCat("this rendezvous takes no new nodes: ", draining_);
  }
  if (std::string objection = SettingsObjection(request.settings, limits_.max_nodes_per_job);
      !objection.empty()) {
    return objection;
  }
  if (std::string objection = NodeObjection(request.node); !objection.empty()) return objection;
  if (request.settings.exact_ranks &&
      request.node.rank_hint.value_or(INT_MAX) >= request.settings.max_nodes) {
    return absl::StrCat("node ", request.node.host, " brings no node rank below ",
                        request.settings.max_nodes, ", the number of nodes");
  }

  const auto found = jobs_.find(request.run_id);
  if (found == jobs_.end()) {
    if (job_count() < limits_.max_jobs) return "";
    return absl::StrCat("this rendezvous has ", Count(limits_.max_jobs, "job"),
                        ", as many as it may");
  }
  const Job& job = *found->second;
  if (job.HasNode(request.node.node_id)) {
    return absl::StrCat("node id ", request.node.node_id, " already attends job '", request.run_id,
                        "'");
  }
  const JobSettings& settings = job.settings();
  if (settings.exact_ranks != request.settings.exact_ranks) {
    return absl::StrCat("node ", request.node.host, settings.exact_ranks ? " has no" : " has a",
                        " fixed node rank, unlike the other nodes of job '", request.run_id,
                        "'; give the same --rdzv-backend and addresses on every node");
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

Coordinator::Attendance* Coordinator::Hear(AgentId agent, TimePoint now) {
  const auto found = attendances_.find(agent);
  if (found == attendances_.end()) return nullptr;
  RenewLease(agent, found->second, now);
  return &found->second;
}

void Coordinator::KeepAlive(AgentId agent, TimePoint now) {
  Hear(agent, now);
}

void Coordinator::WorkersStarted(AgentId agent, RoundNumber round, TimePoint now) {
  if (Attendance* attendance = Hear(agent, now)) attendance->job->WorkersStarted(agent, round, now);
}

void Coordinator::WorkersExited(AgentId agent, RoundNumber round, const WorkersOutcome& outcome,
                                TimePoint now) {
  if (Attendance* attendance = Hear(agent, now)) {
    attendance->job->WorkersExited(agent, round, outcome, now);
  }
}

void Coordinator::Leaving(AgentId agent, const std::string& reason, TimePoint now) {
  if (Attendance* attendance = Hear(agent, now)) attendance->job->Leaving(agent, reason, now);
}

void Coordinator::Leave(AgentId agent, const std::string& reason, TimePoint now) {
  Remove(agent, reason.empty() ? "left" : absl::StrCat("left: ", reason), now);
}

void Coordinator::Lost(AgentId agent, const std::string& why, TimePoint now) {
  Remove(agent, absl::StrCat("was lost: ", why), now);
}

void Coordinator::Drain(const std::string& why) {
  draining_ = why;
}

void Coordinator::Close(const std::string& why, TimePoint now) {
  for (auto& [run_id, job] : jobs_) job->Close(why, now);
}

void Coordinator::Tick(TimePoint now) {
  const std::optional<TimePoint> due = NextDeadline();
  if (!due || now < *due) return;
  if (now - *due > kHalt) {
    for (auto& [agent, attendance] : attendances_) RenewLease(agent, attendance, now);
  }
  while (!leases_.empty() && leases_.begin()->first <= now) {
    const AgentId agent = leases_.begin()->second;
    const Duration lease = attendances_.at(agent).lease;
    outbox_.directives.push_back(
        {agent, Refused{absl::StrCat("this node was not heard of for ", Seconds(lease),
                                     " and has lost its place")}});
    Lost(agent, absl::StrCat("nothing was heard of it for ", Seconds(lease)), now);
  }
  for (auto& [run_id, job] : jobs_) job->Tick(now);
}

std::optional<TimePoint> Coordinator::NextDeadline() const {
  std::optional<TimePoint> next;
  if (!leases_.empty()) next = leases_.begin()->first;
  for (const auto& [run_id, job] : jobs_) {
    const std::optional<TimePoint> due = job->NextDeadline();
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

void Coordinator::Remove(AgentId agent, const std::string& why, TimePoint now) {
  const auto found = attendances_.find(agent);
  if (found == attendances_.end()) return;
  Job* const job = found->second.job;
  leases_.erase({found->second.lease_ends, agent});
  attendances_.erase(found);
  job->Leave(agent, why, now);
  if (!job->abandoned()) return;
  outbox_.forgotten_jobs.push_back(job->run_id());
  jobs_.erase(outbox_.forgotten_jobs.back());
}

void Coordinator::RenewLease(AgentId agent, Attendance& attendance, TimePoint now) {
  if (attendance.lease == Duration::zero()) return;
  leases_.erase({attendance.lease_ends, agent});
  attendance.lease_ends = now + attendance.lease;
  leases_.emplace(attendance.lease_ends, agent);
}

std::optional<JobSnapshot> Coordinator::Describe(std::string_view run_id, TimePoint now) const {
  const auto found = jobs_.find(run_id);
  if (found == jobs_.end()) return std::nullopt;
  return found->second->Describe(now);
}

std::vector<JobSnapshot> Coordinator::List(TimePoint now) const {
  std::vector<JobSnapshot> jobs;
  for (const auto& [run_id, job] : jobs_) jobs.push_back(job->Describe(now));
  return jobs;
}

KeyValueStore* Coordinator::FindStore(std::string_view run_id) {
  const auto found = jobs_.find(run_id);
  return found == jobs_.end() ? nullptr : &found->second->store();
}

}  // namespace muster::rendezvous
