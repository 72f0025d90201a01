#include "rendezvous/core/coordinator.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/earliest.h"
#include "base/phrases.h"
#include "rendezvous/core/join_objection.h"

namespace muster::rendezvous {
namespace {

// A Tick later than this did not wait for its turn: the whole process stood still.
constexpr Duration kHalt = std::chrono::milliseconds(250);

}  // namespace

void Coordinator::Hear(AgentId agent, const Event& event, TimePoint now) {
  const auto* const join = std::get_if<JoinRequest>(&event);
  if (join != nullptr && join->settings.lease > Duration::zero()) {
    const Duration shortest = ShortestLease(join->settings.max_nodes);
    if (join->settings.lease < shortest) {
      JoinRequest longer = *join;
      longer.settings.keep_alive = KeepAliveFor(join->settings);
      longer.settings.lease = shortest;
      return Hear(agent, longer, now);
    }
  }
  std::visit([&](const auto& kind) { Handle(agent, kind, now); }, event);
  SettleContests(now);
  Forward();
}

Duration Coordinator::ShortestLease(int max_nodes) const {
  if (!options_.durable) return options_.shortest_lease;
  // Whoever joins may name any number.
  const int nodes = std::clamp(max_nodes, 0, options_.max_nodes_per_job);
  return std::max(options_.shortest_lease,
                  std::min(nodes * options_.lease_per_node, options_.longest_lease_for_nodes));
}

void Coordinator::Handle(AgentId agent, const JoinRequest& request, TimePoint now) {
  // The answer to its first Join was lost with the connection.
  if (Find(agent) == nullptr && attendances_.FindBySession(request.session) != nullptr) {
    Handle(agent, Resume{request.session, request.connection, request.speaks}, now);
    if (Find(agent) == nullptr) return;
  }
  if (ended_sessions_.SaidBefore(request.session, agent, request.connection)) return;
  contests_.Withdraw(agent);
  AgentAttendance* attendance = Find(agent);
  if (attendance == nullptr && RanInAnEndedLife(request)) return TellEnd(agent, request);
  if (const Refused refused = Objection(attendance, request); !refused.sentence.empty()) {
    Tell(agent, refused);
    if (attendance != nullptr) Remove(*attendance, "broke the protocol: " + refused.sentence, now);
    return;
  }
  if (!request.unfit.empty()) return TurnAwayUnfit(agent, request, now);
  if (attendance == nullptr) {
    if (Job* const job = jobs_.Find(request.run_id); job != nullptr && GivesWay(*job, request)) {
      jobs_.Forget(*job, now);
    }
    if (const std::optional<AttendeeId> holder = HolderOfRank(request)) {
      return ContestRank(agent, request, *holder, now);
    }
    attendance = &Open(agent, request, now);
  }
  Renew(*attendance, now);
  attendance->job->Join(attendance->id, request.node, request.after, now);
}

AgentAttendance& Coordinator::Open(AgentId agent, const JoinRequest& request, TimePoint now) {
  // One that comes back as another attendee says what it has lost since it began, and part of that
  // may have been counted.
  const bool comes_back = request.ran_in != 0;
  Job& job = jobs_.FindOrBegin(request.run_id, request.settings, now);
  AgentAttendance& attendance = attendances_.Add(
      {.id = next_attendee_++,
       .job = &job,
       .node_id = request.node.node_id,
       .session = request.session,
       .keep_alive = KeepAliveFor(request.settings),
       .lease = request.settings.lease,
       .heard = now,
       .log_bytes_lost = comes_back ? std::nullopt : std::optional<std::uint64_t>(0),
       .connection = request.connection,
       .agent = agent});
  TellWelcome(attendance, request.speaks);
  return attendance;
}

void Coordinator::TellWelcome(const AgentAttendance& attendance, const SpokenVersions& speaks) {
  Tell(attendance.agent, Welcome{.keep_alive = attendance.keep_alive,
                                 .lease = attendance.lease,
                                 .incarnation = attendance.job->incarnation(),
                                 .durable = options_.durable,
                                 .knock_secret = "",
                                 .version = CommonVersion(options_.speaks, speaks).value_or(1)});
}

bool Coordinator::RanInAnEndedLife(const JoinRequest& request) const {
  return request.ran_in != 0 && jobs_.IsOver(request.run_id, request.ran_in);
}

void Coordinator::TellEnd(AgentId agent, const JoinRequest& request) {
  if (const Verdict* const end = jobs_.FindVerdict(request.run_id, request.ran_in)) {
    return Tell(agent, *end);
  }
  Tell(agent, Refused{absl::StrCat("the job '", request.run_id, "' in which this node ran ",
                                   "workers has ended, and how is not known any more")});
}

bool Coordinator::GivesWay(const Job& job, const JoinRequest& request) {
  return job.abandoned() && request.ran_in == 0 &&
         !SettingsDisagreement(job.settings(), request).empty();
}

std::optional<AttendeeId> Coordinator::HolderOfRank(const JoinRequest& request) const {
  const Job* const job = jobs_.Find(request.run_id);
  if (job == nullptr) return std::nullopt;
  return job->HolderOfRank(request.node);
}

void Coordinator::ContestRank(AgentId agent, const JoinRequest& request, AttendeeId holder,
                              TimePoint now) {
  const AgentAttendance& defender = attendances_.at(holder);
  // An agent of this very process is there.
  if (defender.lease == Duration::zero()) return RefuseRank(agent, request, holder, now);
  contests_.Open(agent, request, holder);
  Tell(agent, Waiting{kNoRound, defender.job->Contest(request.node, holder).Question()});
}

void Coordinator::RefuseRank(AgentId agent, const JoinRequest& request, AttendeeId holder,
                             TimePoint now) {
  Job& job = *attendances_.at(holder).job;
  const ContestedRank contest = job.Contest(request.node, holder);
  Tell(agent, Refused{contest.Refusal()});
  job.DefendRank(contest, holder, now);
}

void Coordinator::SettleContests(TimePoint now) {
  const auto holder_of = [this](const JoinRequest& request) { return HolderOfRank(request); };
  AgentId last = 0;
  while (const auto contest = contests_.TakeDecided(last, holder_of)) {
    last = contest->newcomer;
    if (contest->holder) {
      RefuseRank(last, contest->request, *contest->holder, now);
    } else {
      // It may have to wait for another holder; that one comes later.
      Handle(last, contest->request, now);
    }
  }
}

void Coordinator::TurnAwayUnfit(AgentId agent, const JoinRequest& request, TimePoint now) {
  Tell(agent, Refused{absl::StrCat("this node cannot take part: ", request.unfit)});
  const std::string what = absl::StrCat("does not take part: ", request.unfit);
  AgentAttendance* const attendance = Find(agent);
  if (attendance != nullptr) Remove(*attendance, what, now);
  // Its going may have been the end of the job.
  if (Job* const job = jobs_.Find(request.run_id); job != nullptr) {
    if (attendance == nullptr) job->Remark(request.node.node_id, what);
    job->NotifyAll(absl::StrCat("node ", request.node.host, " ", what));
  }
}

void Coordinator::Handle(AgentId agent, const Resume& resume, TimePoint now) {
  if (Find(agent) != nullptr) return;
  if (std::string objection = VersionObjection(options_.speaks, resume.speaks);
      !objection.empty()) {
    return Tell(agent, Refused{std::move(objection)});
  }
  AgentAttendance* const attendance = attendances_.FindBySession(resume.session);
  if (attendance == nullptr) {
    return Tell(agent, Evicted{"the rendezvous does not know this node, or no longer does"});
  }
  const Refused superseded{"this node has come back over another connection"};
  if (resume.connection < attendance->connection) return Tell(agent, superseded);
  if (attendance->agent != 0) Tell(attendance->agent, superseded);
  attendances_.Connect(*attendance, agent, resume.connection);
  attendance->job->SetOutOfTouch(attendance->id, false);
  Renew(*attendance, now);
  TellWelcome(*attendance, resume.speaks);
  attendance->job->TellAgain(attendance->id);
}

Refused Coordinator::Objection(const AgentAttendance* attendance,
                               const JoinRequest& request) const {
  if (std::string objection = VersionObjection(options_.speaks, request.speaks);
      !objection.empty()) {
    return {objection};
  }
  if (std::string objection = NameObjection(request); !objection.empty()) return {objection};
  if (attendance != nullptr) {
    return {ReturnObjection(request, attendance->job->run_id(), attendance->node_id)};
  }
  if (options_.names_required && request.run_id == kUnnamedJob) {
    return {
        "this rendezvous serves many jobs, and this one has no name; name it, the same on "
        "every node: --rdzv-id=NAME"};
  }
  if (!draining_.empty()) {
    return {absl::StrCat("this rendezvous takes no new nodes: ", draining_)};
  }
  if (std::string objection = RequestObjection(request, options_.max_nodes_per_job);
      !objection.empty()) {
    const bool many = request.settings.max_nodes > options_.max_nodes_per_job;
    return {objection, many ? &limits::kNodesOfJob : nullptr};
  }
  if (agent_count() >= options_.max_nodes) {
    return {absl::StrCat("this rendezvous has ", base::Count(options_.max_nodes, "node"),
                         ", which is its limit"),
            &limits::kNodes};
  }
  const Job* const job = jobs_.Find(request.run_id);
  if (job == nullptr) {
    if (job_count() < options_.max_jobs) return {};
    return {absl::StrCat("this rendezvous has ", base::Count(options_.max_jobs, "job"),
                         ", which is its limit"),
            &limits::kJobs};
  }
  if (GivesWay(*job, request)) return {};
  if (job->HasNode(request.node.node_id)) {
    return {absl::StrCat("node id ", request.node.node_id, " already attends job '", request.run_id,
                         "'")};
  }
  return {SettingsDisagreement(job->settings(), request)};
}

AgentAttendance* Coordinator::Find(AgentId agent) {
  return attendances_.FindByConnection(agent);
}

AgentAttendance* Coordinator::FindAndRenew(AgentId agent, TimePoint now) {
  AgentAttendance* const attendance = Find(agent);
  if (attendance != nullptr) Renew(*attendance, now);
  return attendance;
}

void Coordinator::Renew(AgentAttendance& attendance, TimePoint now) {
  attendances_.RenewLease(attendance, now);
  // Of one that cannot fall silent it is no news.
  if (attendance.lease != Duration::zero()) attendance.job->SetHeard(attendance.id, now);
}

void Coordinator::Handle(AgentId agent, const KeepAlive& beat, TimePoint now) {
  AgentAttendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  Tell(agent, Heard{beat.number});
  attendances_.Beaten(*attendance, now);
  CountLogBytes(*attendance, beat.log_bytes_lost);
  contests_.Witness(attendance->id, beat);
  if (beat.progress.is_news()) {
    attendance->job->OnProgress(attendance->id, beat.progress, now);
  }
}

void Coordinator::CountLogBytes(AgentAttendance& attendance, std::uint64_t lost) {
  const std::uint64_t before = std::exchange(attendance.log_bytes_lost, lost).value_or(lost);
  if (lost <= before) return;
  attendance.job->LogBytesLost(lost - before);
  log_bytes_lost_ +=
      std::min(lost - before, std::numeric_limits<std::uint64_t>::max() - log_bytes_lost_);
}

void Coordinator::Handle(AgentId agent, const WorkersStarted& started, TimePoint now) {
  AgentAttendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  attendance->job->WorkersStarted(attendance->id, started.round, now);
}

void Coordinator::Handle(AgentId agent, const WorkersExited& exited, TimePoint now) {
  AgentAttendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  attendance->job->WorkersExited(attendance->id, exited.round, exited.outcome, exited.failed_ago,
                                 now);
}

void Coordinator::Handle(AgentId agent, const Leaving& leaving, TimePoint now) {
  AgentAttendance* const attendance = FindAndRenew(agent, now);
  if (attendance != nullptr) attendance->job->Leaving(attendance->id, leaving.reason, now);
}

void Coordinator::Handle(AgentId agent, const AskToLeave& asked, TimePoint now) {
  AgentAttendance* const attendance = FindAndRenew(agent, now);
  if (attendance == nullptr) return;
  attendance->job->AskToLeave(attendance->id, asked.round, asked.reason, now);
}

void Coordinator::Handle(AgentId agent, const Goodbye& goodbye, TimePoint now) {
  contests_.Withdraw(agent);
  AgentAttendance* const attendance = Find(agent);
  if (attendance == nullptr) return;
  const std::string& reason = goodbye.reason;
  Remove(*attendance, reason.empty() ? "left" : absl::StrCat("left: ", reason), now);
}

void Coordinator::Disconnected(AgentId agent, const std::string& why, TimePoint now) {
  contests_.Withdraw(agent);
  AgentAttendance* const attendance = Find(agent);
  if (attendance == nullptr) return;
  if (attendance->session.empty() || attendance->lease == Duration::zero()) {
    Remove(*attendance, absl::StrCat("was lost: ", why), now, TimePoint::min(),
           now - attendance->heard);
    SettleContests(now);
    return Forward();
  }
  attendances_.Disconnect(*attendance, why, now);
  attendance->job->SetOutOfTouch(attendance->id, true);
  attendance->job->Remark(
      attendance->node_id,
      absl::StrCat("is out of touch: ", why, "; it has ",
                   base::Seconds(*attendance->lease_ends - now), " to come back"));
  Forward();
}

void Coordinator::AgentDied(const SessionToken& session, TimePoint now) {
  AgentAttendance* const attendance = attendances_.FindBySession(session);
  if (attendance == nullptr) return;
  Remove(*attendance, "was lost: its agent died, and so did its workers", now, TimePoint::min(),
         now - attendance->heard);
  SettleContests(now);
  Forward();
}

void Coordinator::Drain(const std::string& why) {
  draining_ = why;
}

void Coordinator::Close(const std::string& why, TimePoint now) {
  jobs_.Close(why, now);
  jobs_.ForgetAbandoned(now);
  SettleContests(now);
  Forward();
}

void Coordinator::Tick(TimePoint now) {
  const std::optional<TimePoint> due = NextDeadline();
  if (!due || now < *due) return;
  if (now - *due > kHalt) attendances_.BearHalt(now);
  EndLeases(now);
  jobs_.Tick(now);
  jobs_.ForgetAbandoned(now);
  SettleContests(now);
  Forward();
}

void Coordinator::EndLeases(TimePoint now) {
  while (AgentAttendance* const lost = attendances_.FirstLost(now)) {
    std::string why = lost->disconnected;
    if (why.empty()) {
      const std::string silence = base::Seconds(SelfFenceAfter(lost->lease));
      why = absl::StrCat("nothing was heard from it for ", silence);
      Tell(lost->agent, Evicted{absl::StrCat("nothing was heard from this node for ", silence,
                                             ", and it has lost its place")});
    }
    // It is given up before its lease is over, and its workers may run on until then.
    Remove(*lost, absl::StrCat("was lost: ", why), now, lost->gone_by, now - lost->heard);
  }
}

std::optional<TimePoint> Coordinator::NextDeadline() const {
  if (is_deaf_) return std::nullopt;
  return base::Earliest(attendances_.NextLeaseEnd(), jobs_.NextDeadline());
}

void Coordinator::Remove(AgentAttendance& attendance, const std::string& why, TimePoint now,
                         TimePoint gone_by, std::optional<Duration> silence) {
  const AttendeeId id = attendance.id;
  Job* const job = attendance.job;
  ended_sessions_.Add(attendance.session, attendance.agent, attendance.connection, now);
  attendances_.Remove(attendance);
  job->Leave(id, why, now, gone_by, silence);
  // Before anything else is removed, so that who is told to start and lost in one call is not left
  // out between the two.
  Forward();
  if (job->is_over()) jobs_.Forget(*job, now);
}

void Coordinator::Tell(AgentId agent, Directive directive) {
  outbox_.directives.emplace_back(agent, std::move(directive));
}

void Coordinator::Forward() {
  if (from_jobs_.empty()) return;  // as after a beat, which is nearly all that is ever heard
  Outbox said = std::exchange(from_jobs_, {});
  outbox_.changed_jobs.merge(said.changed_jobs);
  for (Transition& transition : said.transitions) {
    outbox_.transitions.push_back(std::move(transition));
  }
  std::move(said.forgotten_jobs.begin(), said.forgotten_jobs.end(),
            std::back_inserter(outbox_.forgotten_jobs));
  outbox_.directives.reserve(outbox_.directives.size() + said.directives.size());
  for (Outgoing& outgoing : said.directives) {
    // Who is out of touch is told again when it comes back; who has left need not be told.
    const AgentAttendance* const attendance = attendances_.Find(outgoing.to);
    if (attendance == nullptr || attendance->agent == 0) continue;
    outbox_.directives.emplace_back(attendance->agent, std::move(outgoing.shared));
  }
}

std::optional<JobRecord> Coordinator::Record(std::string_view run_id, TimePoint now) const {
  std::optional<JobRecord> record = jobs_.Record(run_id, now);
  if (!record) return std::nullopt;
  for (AttendeeRecord& attendee : record->attendees) {
    const AgentAttendance& attendance = attendances_.at(attendee.id);
    attendee.session = attendance.session;
    attendee.lease = attendance.lease;
    attendee.keep_alive = attendance.keep_alive;
  }
  return record;
}

bool Coordinator::Restore(const JobRecord& record, TimePoint now) {
  if (jobs_.Find(record.run_id) != nullptr) return false;
  std::set<AttendeeId> attendees;
  for (const AttendeeRecord& attendee : record.attendees) {
    const bool known = attendances_.Find(attendee.id) != nullptr;
    if (known || !attendees.insert(attendee.id).second) return false;
  }
  is_deaf_ = true;
  if (record.attendees.empty() && record.verdict) {
    // Who was lost counts its lease anew, as below.
    const bool may_run = record.workers_gone_in > Duration::zero();
    const Duration lease = std::max(record.settings.lease, record.workers_gone_in);
    jobs_.RestoreEnded(record, may_run ? now + lease + options_.restart_grace : TimePoint::min(),
                       now);
    Forward();
    return true;
  }
  Job& job = jobs_.Restore(record, now);
  Duration longest_lease = record.settings.lease;
  for (const AttendeeRecord& attendee : record.attendees) {
    longest_lease = std::max(longest_lease, attendee.lease);
    next_attendee_ = std::max(next_attendee_, attendee.id + 1);
    const TimePoint lost_at = now + attendee.lease + options_.restart_grace;
    attendances_.Add({.id = attendee.id,
                      .job = &job,
                      .node_id = attendee.node->node_id,
                      .session = attendee.session,
                      .keep_alive = attendee.keep_alive,
                      .lease = attendee.lease,
                      .lease_ends = lost_at,
                      .gone_by = lost_at,
                      .heard = now,
                      .disconnected = "it did not come back after the rendezvous was restarted"});
  }
  // A node that was lost, for which the round is held, does not know that it was. It may have found
  // this daemon dead in time, and counts its lease anew since then, as the others do.
  const TimePoint hears_by = now + longest_lease + options_.restart_grace;
  if (record.round.held_for && longest_lease > Duration::zero()) job.HoldUntil(hears_by, now);
  if (record.workers_gone_in > Duration::zero()) {
    job.ExpectWorkersUntil(
        std::max(hears_by, now + record.workers_gone_in + options_.restart_grace));
  }
  if (job.is_over()) jobs_.Forget(job, now);
  Forward();
  return true;
}

void Coordinator::BeginToServe(TimePoint now) {
  if (!std::exchange(is_deaf_, false)) return;
  attendances_.BeginToServe(now);
  jobs_.BeginToServe(now);
}

KeyValueStore* Coordinator::FindStore(std::string_view run_id) {
  Job* const job = jobs_.Find(run_id);
  return job == nullptr ? nullptr : &job->store();
}

}  // namespace muster::rendezvous
