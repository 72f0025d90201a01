#include "rendezvous/core/coordinator.h"

#include <algorithm>
#include <climits>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "rendezvous/core/names.h"

namespace muster::rendezvous {
namespace {

// Unless the agent says otherwise, beats come this many times in a lease: losing one or two costs
// nothing.
constexpr int kBeatsPerLease = 3;
constexpr int kFewestBeatsPerLease = 2;
constexpr Duration kShortestLease = std::chrono::milliseconds(100);
// For so long at most a node that is lost can keep the others waiting.
constexpr Duration kLongestLease = std::chrono::hours(1);
constexpr Duration kLongestDelay = std::chrono::hours(24);
constexpr std::size_t kLongestSession = 64;
// A connection that is gone says more than silence: after this part of the lease nobody waits for
// the agent to come back.
constexpr int kReattachPart = 3;
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
      settings.keep_alive < Duration::zero() || settings.lease < Duration::zero()) {
    return "a timeout is not positive";
  }
  const RestartPolicy& restart = settings.restart;
  if (restart.window < Duration::zero() || restart.delay < Duration::zero() ||
      restart.longest_delay < restart.delay || restart.longest_delay > kLongestDelay ||
      restart.no_progress_limit < 0) {
    return "the restart policy has a negative number, or a delay that is too long";
  }
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

void Coordinator::Hear(AgentId agent, const Event& event, TimePoint now) {
  std::visit([&](const auto& kind) { Handle(agent, kind, now); }, event);
  SettleContests(now);
  Forward();
}

void Coordinator::Handle(AgentId agent, const JoinRequest& request, TimePoint now) {
  // The answer to its first Join was lost with the connection.
  if (!connections_.contains(agent) && sessions_.contains(request.session)) {
    Handle(agent, Resume{request.session, request.connection}, now);
    if (!connections_.contains(agent)) return;
  }
  if (ended_sessions_.SaidBefore(request.session, agent, request.connection)) return;
  contests_.erase(agent);
  Attendance* attendance = Find(agent);
  if (attendance == nullptr && TellEnd(agent, request)) return;
  const std::string objection = Objection(agent, request);
  if (objection.empty() && !request.unfit.empty()) return TurnAwayUnfit(agent, request, now);
  if (objection.empty() && attendance == nullptr) GiveWay(request, now);
  if (objection.empty() && attendance == nullptr && AwaitHolder(agent, request, now)) return;
  if (!objection.empty()) {
    Tell(agent, Refused{objection});
    if (attendance != nullptr) Remove(*attendance, "broke the protocol: " + objection, now);
    return;
  }
  if (attendance == nullptr) attendance = &Open(agent, request, now);
  RenewLease(*attendance, now);
  attendance->job->Join(attendance->id, request.node, request.after, now);
}

Coordinator::Attendance& Coordinator::Open(AgentId agent, const JoinRequest& request,
                                           TimePoint now) {
  std::unique_ptr<Job>& job = jobs_[request.run_id];
  if (job == nullptr) {
    job = std::make_unique<Job>(request.run_id, next_incarnation_++, request.settings, now,
                                &from_jobs_);
    const auto last = ended_jobs_.find(request.run_id);
    if (last != ended_jobs_.end()) job->HoldUntil(last->second.workers_gone_by, now);
  }
  const AttendeeId id = next_attendee_++;
  Attendance& attendance = attendances_[id];
  attendance = {.id = id,
                .job = job.get(),
                .node_id = request.node.node_id,
                .session = request.session,
                .keep_alive = KeepAliveFor(request.settings),
                .lease = request.settings.lease,
                .connection = request.connection,
                .agent = agent};
  connections_[agent] = id;
  if (!request.session.empty()) sessions_[request.session] = id;
  Tell(agent,
       Welcome{attendance.keep_alive, attendance.lease, job->incarnation(), options_.durable});
  return attendance;
}

bool Coordinator::TellEnd(AgentId agent, const JoinRequest& request) {
  if (request.ran_in == 0) return false;
  const auto job = jobs_.find(request.run_id);
  if (job != jobs_.end() && job->second->incarnation() == request.ran_in) return false;
  const auto ended = ended_jobs_.find(request.run_id);
  if (ended != ended_jobs_.end() && ended->second.record.incarnation == request.ran_in) {
    Tell(agent, *ended->second.record.verdict);
  } else {
    Tell(agent, Refused{absl::StrCat("the job '", request.run_id, "' in which this node ran ",
                                     "workers has ended, and how is not known any more")});
  }
  return true;
}

bool Coordinator::GivesWay(const Job& job, const JoinRequest& request) {
  if (!job.abandoned() || request.ran_in != 0) return false;
  const JobSettings& settings = job.settings();
  return settings.min_nodes != request.settings.min_nodes ||
         settings.max_nodes != request.settings.max_nodes ||
         settings.exact_ranks != request.settings.exact_ranks;
}

void Coordinator::GiveWay(const JoinRequest& request, TimePoint now) {
  const auto found = jobs_.find(request.run_id);
  if (found != jobs_.end() && GivesWay(*found->second, request)) Forget(*found->second, now);
}

bool Coordinator::AwaitHolder(AgentId agent, const JoinRequest& request, TimePoint now) {
  const auto job = jobs_.find(request.run_id);
  if (job == jobs_.end()) return false;
  const std::optional<AttendeeId> holder = job->second->HolderOfRank(request.node);
  if (!holder) return false;
  // An agent of this very process is there.
  if (attendances_.at(*holder).lease == Duration::zero()) {
    Tell(agent, Refused{job->second->RefuseRank(request.node, *holder, now)});
    return true;
  }
  contests_[agent] = {request, *holder};
  Tell(agent,
       Waiting{kNoRound, absl::StrCat("node rank ", request.node.rank_hint.value_or(0), " of job '",
                                      request.run_id, "' is node ", job->second->HostOf(*holder),
                                      "'s; this node waits until it is known whether that one is "
                                      "still there")});
  return true;
}

void Coordinator::WitnessLife(AttendeeId holder, const KeepAlive& beat) {
  for (auto& [agent, contest] : contests_) {
    if (contest.holder != holder) continue;
    if (!contest.answered) {
      contest.answered = beat.number;
    } else if (beat.heard >= *contest.answered) {
      contest.holder_lives = true;
    }
  }
}

void Coordinator::SettleContests(TimePoint now) {
  for (auto next = contests_.begin(); next != contests_.end();) {
    const auto at = next++;
    const Contest& contest = at->second;
    const auto job = jobs_.find(contest.request.run_id);
    const bool stands =
        job != jobs_.end() && job->second->HolderOfRank(contest.request.node) == contest.holder;
    if (stands && !contest.holder_lives) continue;
    const AgentId agent = at->first;
    const AttendeeId holder = contest.holder;
    const JoinRequest request = contest.request;
    contests_.erase(at);
    if (stands) {
      Tell(agent, Refused{job->second->RefuseRank(request.node, holder, now)});
    } else {
      // It may have to wait for another holder; that one comes later.
      Handle(agent, request, now);
    }
    next = contests_.upper_bound(agent);
  }
}

void Coordinator::TurnAwayUnfit(AgentId agent, const JoinRequest& request, TimePoint now) {
  Tell(agent, Refused{absl::StrCat("this node must not take part: ", request.unfit)});
  const std::string what = absl::StrCat("does not take part: ", request.unfit);
  Attendance* const attendance = Find(agent);
  if (attendance != nullptr) Remove(*attendance, what, now);
  // Its going may have been the end of the job.
  if (const auto job = jobs_.find(request.run_id); job != jobs_.end()) {
    if (attendance == nullptr) job->second->Remark(request.node.node_id, what);
    job->second->NotifyAll(absl::StrCat("node ", request.node.host, " ", what));
  }
}

void Coordinator::Handle(AgentId agent, const Resume& resume, TimePoint now) {
  if (connections_.contains(agent)) return;
  const auto found = sessions_.find(resume.session);
  if (found == sessions_.end()) {
    return Tell(agent, Evicted{"the rendezvous knows nothing, or no more, of this node"});
  }
  Attendance& attendance = attendances_.at(found->second);
  if (resume.connection < attendance.connection) {
    return Tell(agent, Refused{"this node has come back over another connection"});
  }
  attendance.connection = resume.connection;
  if (attendance.agent != 0) {
    connections_.erase(attendance.agent);
    Tell(attendance.agent, Refused{"this node has come back over another connection"});
  }
  connections_[agent] = attendance.id;
  attendance.agent = agent;
  attendance.disconnected.clear();
  attendance.job->SetOutOfTouch(attendance.id, false);
  RenewLease(attendance, now);
  Tell(agent, Welcome{attendance.keep_alive, attendance.lease, attendance.job->incarnation(),
                      options_.durable});
  attendance.job->TellAgain(attendance.id);
}

std::string Coordinator::Objection(AgentId agent, const JoinRequest& request) const {
  if (const absl::Status status = CheckName("run id", request.run_id); !status.ok()) {
    return std::string(status.message());
  }
  if (request.session.size() > kLongestSession) return "the session token is too long";
  if (const auto found = connections_.find(agent); found != connections_.end()) {
    const Attendance& attendance = attendances_.at(found->second);
    if (attendance.job->run_id() != request.run_id || attendance.node_id != request.node.node_id) {
      return absl::StrCat("an agent of job '", attendance.job->run_id(), "' as node ",
                          attendance.node_id, " cannot join job '", request.run_id, "' as node ",
                          request.node.node_id);
    }
    return NodeObjection(request.node);
  }
  if (options_.names_required && request.run_id == kUnnamedJob) {
    return absl::StrCat(
        "this rendezvous serves jobs of many users, and this one has no name; give ",
        "it one, the same on every node: --rdzv-id=NAME");
  }
  if (!draining_.empty()) {
    return absl::StrCat("this rendezvous takes no new nodes: ", draining_);
  }
  if (std::string objection = SettingsObjection(request.settings, options_.max_nodes_per_job);
      !objection.empty()) {
    return objection;
  }
  if (std::string objection = NodeObjection(request.node); !objection.empty()) return objection;
  if (request.settings.exact_ranks &&
      request.node.rank_hint.value_or(INT_MAX) >= request.settings.max_nodes) {
    return absl::StrCat("node ", request.node.host, " brings no node rank below ",
                        request.settings.max_nodes, ", the number of nodes");
  }

  if (request.node.slots > INT_MAX / request.settings.max_nodes) {
    return absl::StrCat(request.node.slots, " workers on each of ", request.settings.max_nodes,
                        " nodes are more than ", INT_MAX, " in all");
  }

  const auto found = jobs_.find(request.run_id);
  if (found == jobs_.end()) {
    if (job_count() < options_.max_jobs) return "";
    return absl::StrCat("this rendezvous has ", base::Count(options_.max_jobs, "job"),
                        ", as many as it may");
  }
  const Job& job = *found->second;
  if (GivesWay(job, request)) return "";
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

Coordinator::Attendance* Coordinator::Find(AgentId agent) {
  const auto found = connections_.find(agent);
  return found == connections_.end() ? nullptr : &attendances_.at(found->second);
}

Coordinator::Attendance* Coordinator::FindAndRenew(AgentId agent, TimePoint now) {
  Attendance* const attendance = Find(agent);
  if (attendance != nullptr) RenewLease(*attendance, now);
  return attendance;
}

void Coordinator::Handle(AgentId agent, const KeepAlive& beat, TimePoint now) {
  const Attendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  Tell(agent, Heard{beat.number});
  WitnessLife(attendance->id, beat);
}

void Coordinator::Handle(AgentId agent, const WorkersStarted& started, TimePoint now) {
  Attendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  attendance->job->WorkersStarted(attendance->id, started.round, now);
}

void Coordinator::Handle(AgentId agent, const WorkersExited& exited, TimePoint now) {
  Attendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  attendance->job->WorkersExited(attendance->id, exited.round, exited.outcome, now);
}

void Coordinator::Handle(AgentId agent, const Leaving& leaving, TimePoint now) {
  Attendance* const attendance = FindAndRenew(agent, now);
  if (attendance != nullptr) attendance->job->Leaving(attendance->id, leaving.reason, now);
}

void Coordinator::Handle(AgentId agent, const Goodbye& goodbye, TimePoint now) {
  contests_.erase(agent);
  Attendance* const attendance = Find(agent);
  if (attendance == nullptr) return;
  const std::string& reason = goodbye.reason;
  Remove(*attendance, reason.empty() ? "left" : absl::StrCat("left: ", reason), now);
}

void Coordinator::Disconnected(AgentId agent, const std::string& why, TimePoint now) {
  contests_.erase(agent);
  Attendance* const attendance = Find(agent);
  if (attendance == nullptr) return;
  if (attendance->session.empty() || attendance->lease == Duration::zero()) {
    Remove(*attendance, absl::StrCat("was lost: ", why), now);
    SettleContests(now);
    return Forward();
  }
  connections_.erase(agent);
  attendance->agent = 0;
  attendance->disconnected = why;
  attendance->job->SetOutOfTouch(attendance->id, true);
  const TimePoint grace_ends = now + ReattachGrace(*attendance);
  if (grace_ends < attendance->lease_ends) SetLease(*attendance, grace_ends);
  attendance->job->Remark(
      attendance->node_id,
      absl::StrCat("is out of touch: ", why, "; it has ",
                   base::Seconds(attendance->lease_ends - now), " to come back"));
  Forward();
}

void Coordinator::AgentDied(const SessionToken& session, TimePoint now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Attendance& attendance = attendances_.at(found->second);
  Remove(attendance, "was lost: its agent died, and so did its workers", now);
  SettleContests(now);
  Forward();
}

void Coordinator::Drain(const std::string& why) {
  draining_ = why;
}

void Coordinator::Close(const std::string& why, TimePoint now) {
  for (auto& [run_id, job] : jobs_) job->Close(why, now);
  ForgetAbandoned(now);
  SettleContests(now);
  Forward();
}

void Coordinator::Tick(TimePoint now) {
  const std::optional<TimePoint> due = NextDeadline();
  if (!due || now < *due) return;
  if (now - *due > kHalt) {
    for (auto& [id, attendance] : attendances_) BearHalt(attendance, now);
  }
  EndLeases(now);
  for (auto& [run_id, job] : jobs_) job->Tick(now);
  ForgetAbandoned(now);
  SettleContests(now);
  Forward();
}

void Coordinator::BearHalt(Attendance& attendance, TimePoint now) {
  if (attendance.agent != 0) return RenewLease(attendance, now);
  // Of one that is out of touch nothing can have been heard but its coming back.
  const TimePoint grace_ends = now + ReattachGrace(attendance);
  if (attendance.lease_ends < grace_ends) SetLease(attendance, grace_ends);
}

Duration Coordinator::ReattachGrace(const Attendance& attendance) const {
  return std::min(options_.reattach_grace, attendance.lease / kReattachPart);
}

void Coordinator::EndLeases(TimePoint now) {
  while (!leases_.empty() && leases_.begin()->first <= now) {
    Attendance& attendance = attendances_.at(leases_.begin()->second);
    std::string why = attendance.disconnected;
    if (why.empty()) {
      why = absl::StrCat("nothing was heard of it for ",
                         base::Seconds(SelfFenceAfter(attendance.lease)));
      Tell(attendance.agent, Evicted{absl::StrCat("this node was not heard of for ",
                                                  base::Seconds(SelfFenceAfter(attendance.lease)),
                                                  " and has lost its place")});
    }
    // It is given up before its lease is over, and its workers may run on until then.
    Remove(attendance, absl::StrCat("was lost: ", why), now, attendance.gone_by);
  }
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

void Coordinator::Remove(Attendance& attendance, const std::string& why, TimePoint now,
                         TimePoint gone_by) {
  const AttendeeId id = attendance.id;
  Job* const job = attendance.job;
  leases_.erase({attendance.lease_ends, id});
  connections_.erase(attendance.agent);
  sessions_.erase(attendance.session);
  ended_sessions_.Add(attendance.session, attendance.agent, attendance.connection, now);
  attendances_.erase(id);
  job->Leave(id, why, now, gone_by);
  // Before anything else is removed, so that who is told to start and lost in one call is not left
  // out between the two.
  Forward();
  if (job->abandoned() && !job->awaits_return()) Forget(*job, now);
}

void Coordinator::ForgetAbandoned(TimePoint now) {
  std::vector<Job*> over;
  for (auto& [run_id, job] : jobs_) {
    if (job->abandoned() && !job->awaits_return()) over.push_back(job.get());
  }
  for (Job* const job : over) Forget(*job, now);
}

void Coordinator::Forget(Job& job, TimePoint now) {
  job.Close("its last node has left", now);
  Forward();
  const std::string run_id = job.run_id();
  RememberEnd({.run_id = run_id,
               .incarnation = job.incarnation(),
               .settings = job.settings(),
               .verdict = job.verdict()},
              job.workers_gone_by());
  outbox_.forgotten_jobs.push_back(run_id);
  outbox_.changed_jobs.insert(run_id);
  jobs_.erase(run_id);
}

void Coordinator::RememberEnd(JobRecord ended, TimePoint workers_gone_by) {
  const std::string run_id = ended.run_id;
  if (const auto last = ended_jobs_.find(run_id); last != ended_jobs_.end()) {
    ended_in_order_.erase(last->second.number);
    workers_gone_by = std::max(workers_gone_by, last->second.workers_gone_by);
  }
  const std::uint64_t number = next_ended_++;
  ended_in_order_[number] = run_id;
  ended_jobs_[run_id] = {std::move(ended), workers_gone_by, number};
  if (ended_jobs_.size() <= options_.max_ended_jobs) return;
  const std::string oldest = ended_in_order_.extract(ended_in_order_.begin()).mapped();
  ended_jobs_.erase(oldest);
  // The journal has it under its name, unless that is another job's by now.
  if (!jobs_.contains(oldest)) outbox_.forgotten_jobs.push_back(oldest);
}

void Coordinator::SetLease(Attendance& attendance, TimePoint ends) {
  leases_.erase({attendance.lease_ends, attendance.id});
  attendance.lease_ends = ends;
  leases_.emplace(attendance.lease_ends, attendance.id);
}

void Coordinator::RenewLease(Attendance& attendance, TimePoint now) {
  if (attendance.lease == Duration::zero()) return;
  attendance.gone_by = now + attendance.lease;
  SetLease(attendance, now + SelfFenceAfter(attendance.lease));
}

void Coordinator::Tell(AgentId agent, Directive directive) {
  outbox_.directives.push_back({agent, std::move(directive)});
}

void Coordinator::Forward() {
  if (from_jobs_.empty()) return;  // as after a beat, which is nearly all that is ever heard
  Outbox said = std::exchange(from_jobs_, {});
  outbox_.changed_jobs.merge(said.changed_jobs);
  for (Transition& transition : said.transitions) {
    outbox_.transitions.push_back(std::move(transition));
  }
  for (Outgoing& outgoing : said.directives) {
    // Who is out of touch is told again when it comes back; who has left need not be told.
    const auto attendance = attendances_.find(outgoing.to);
    if (attendance == attendances_.end() || attendance->second.agent == 0) continue;
    Tell(attendance->second.agent, std::move(outgoing.directive));
  }
}

std::optional<JobRecord> Coordinator::Record(std::string_view run_id, TimePoint now) const {
  const auto found = jobs_.find(run_id);
  if (found == jobs_.end()) {
    const auto ended = ended_jobs_.find(run_id);
    if (ended == ended_jobs_.end()) return std::nullopt;
    JobRecord record = ended->second.record;
    // The earliest of all times, that of a job which has lost nobody, has no distance from now.
    const TimePoint gone_by = ended->second.workers_gone_by;
    record.workers_gone_in = gone_by > now ? gone_by - now : Duration::zero();
    return record;
  }
  JobRecord record = found->second->Record(now);
  for (AttendeeRecord& attendee : record.attendees) {
    const Attendance& attendance = attendances_.at(attendee.id);
    attendee.session = attendance.session;
    attendee.lease = attendance.lease;
    attendee.keep_alive = attendance.keep_alive;
  }
  return record;
}

void Coordinator::Restore(const JobRecord& record, TimePoint now) {
  next_incarnation_ = std::max(next_incarnation_, record.incarnation + 1);
  if (record.attendees.empty() && record.verdict) {
    // Who was lost counts its lease anew, as below.
    const bool may_run = record.workers_gone_in > Duration::zero();
    const Duration lease = std::max(record.settings.lease, record.workers_gone_in);
    return RememberEnd(record, may_run ? now + lease + options_.restart_grace : TimePoint::min());
  }
  auto& job = jobs_[record.run_id];
  job = std::make_unique<Job>(record, now, &from_jobs_);
  Duration longest_lease = record.settings.lease;
  for (const AttendeeRecord& attendee : record.attendees) {
    longest_lease = std::max(longest_lease, attendee.lease);
    next_attendee_ = std::max(next_attendee_, attendee.id + 1);
    Attendance& attendance = attendances_[attendee.id];
    attendance = {.id = attendee.id,
                  .job = job.get(),
                  .node_id = attendee.node.node_id,
                  .session = attendee.session,
                  .keep_alive = attendee.keep_alive,
                  .lease = attendee.lease,
                  .disconnected = "it did not come back after the rendezvous was restarted"};
    if (!attendee.session.empty()) sessions_[attendee.session] = attendee.id;
    attendance.gone_by = now + attendee.lease + options_.restart_grace;
    SetLease(attendance, attendance.gone_by);
  }
  // A node that was lost, for which the round is held, does not know that it was. It may have found
  // this daemon dead in time, and counts its lease anew since then, as the others do.
  if (record.round.held_for && longest_lease > Duration::zero()) {
    job->HoldUntil(now + longest_lease + options_.restart_grace, now);
  }
  if (job->abandoned() && !job->awaits_return()) Forget(*job, now);
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
