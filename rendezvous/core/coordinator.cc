#include "rendezvous/core/coordinator.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

// A Tick later than this was not merely waiting for its turn: the whole process was stalled.
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

void Coordinator::Handle(AgentId agent, const Resume& resume, TimePoint now) {
  if (Find(agent) != nullptr) return;
  if (std::string objection = VersionObjection(options_.speaks, resume.speaks);
      !objection.empty()) {
    return Tell(agent, Refused{std::move(objection)});
  }
  SessionEntry* const agent_session = session_table_.FindBySession(resume.session);
  if (agent_session == nullptr) {
    return Tell(agent, Evicted{"the rendezvous does not know this node, or no longer knows it"});
  }
  const Refused superseded{"this node has come back over another connection"};
  if (resume.connection < agent_session->connection) return Tell(agent, superseded);
  if (agent_session->agent != 0) Tell(agent_session->agent, superseded);
  session_table_.Connect(*agent_session, agent, resume.connection);
  agent_session->job->SetOutOfTouch(agent_session->id, false);
  Renew(*agent_session, now);
  TellWelcome(*agent_session, resume.speaks);
  agent_session->job->TellAgain(agent_session->id);
}

Refused Coordinator::Objection(const SessionEntry* agent_session,
                               const JoinRequest& request) const {
  if (std::string objection = VersionObjection(options_.speaks, request.speaks);
      !objection.empty()) {
    return {objection};
  }
  if (std::string objection = NameObjection(request); !objection.empty()) return {objection};
  if (agent_session != nullptr) {
    return {ReturnObjection(request, agent_session->job->run_id(), agent_session->node_id)};
  }
  if (options_.names_required && request.run_id == kUnnamedJob) {
    return {
        "this rendezvous serves many jobs, and this one has no name; name it, the same on "
        "every node: --rdzv-id=NAME"};
  }
  if (!draining_.empty()) {
    return {absl::StrCat("this rendezvous accepts no new nodes: ", draining_)};
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

SessionEntry* Coordinator::FindAndRenew(AgentId agent, TimePoint now) {
  SessionEntry* const agent_session = Find(agent);
  if (agent_session != nullptr) Renew(*agent_session, now);
  return agent_session;
}

void Coordinator::Renew(SessionEntry& agent_session, TimePoint now) {
  session_table_.RenewLease(agent_session, now);
  // An agent without a lease cannot fall silent, so this is no news.
  if (agent_session.lease != Duration::zero()) agent_session.job->SetHeard(agent_session.id, now);
}

void Coordinator::Handle(AgentId agent, const KeepAlive& beat, TimePoint now) {
  SessionEntry* const agent_session = FindAndRenew(agent, now);
  if (agent_session == nullptr) return;
  Tell(agent, Heard{beat.number});
  session_table_.Beaten(*agent_session, now);
  CountLogBytes(*agent_session, beat.log_bytes_lost);
  contests_.Witness(agent_session->id, beat);
  if (beat.progress.is_news()) {
    agent_session->job->OnProgress(agent_session->id, beat.progress, now);
  }
}

void Coordinator::CountLogBytes(SessionEntry& agent_session, std::uint64_t lost) {
  const std::uint64_t before = std::exchange(agent_session.log_bytes_lost, lost).value_or(lost);
  if (lost <= before) return;
  agent_session.job->LogBytesLost(lost - before);
  log_bytes_lost_ +=
      std::min(lost - before, std::numeric_limits<std::uint64_t>::max() - log_bytes_lost_);
}

void Coordinator::Handle(AgentId agent, const WorkersStarted& started, TimePoint now) {
  SessionEntry* const agent_session = FindAndRenew(agent, now);
  if (agent_session == nullptr) return;
  agent_session->job->WorkersStarted(agent_session->id, started.round, now);
}

void Coordinator::Handle(AgentId agent, const WorkersExited& exited, TimePoint now) {
  SessionEntry* const agent_session = FindAndRenew(agent, now);
  if (agent_session == nullptr) return;
  agent_session->job->WorkersExited(agent_session->id, exited.round, exited.outcome,
                                    exited.failed_ago, now);
}

void Coordinator::Handle(AgentId agent, const Leaving& leaving, TimePoint now) {
  SessionEntry* const agent_session = FindAndRenew(agent, now);
  if (agent_session != nullptr) agent_session->job->Leaving(agent_session->id, leaving.reason, now);
}

void Coordinator::Handle(AgentId agent, const AskToLeave& asked, TimePoint now) {
  SessionEntry* const agent_session = FindAndRenew(agent, now);
  if (agent_session == nullptr) return;
  agent_session->job->AskToLeave(agent_session->id, asked.round, asked.reason, now);
}

void Coordinator::Handle(AgentId agent, const Goodbye& goodbye, TimePoint now) {
  contests_.Withdraw(agent);
  SessionEntry* const agent_session = Find(agent);
  if (agent_session == nullptr) return;
  const std::string& reason = goodbye.reason;
  Remove(*agent_session, reason.empty() ? "left" : absl::StrCat("left: ", reason), now);
}

void Coordinator::Disconnected(AgentId agent, const std::string& why, TimePoint now) {
  contests_.Withdraw(agent);
  SessionEntry* const agent_session = Find(agent);
  if (agent_session == nullptr) return;
  if (agent_session->session.empty() || agent_session->lease == Duration::zero()) {
    Remove(*agent_session, absl::StrCat("was lost: ", why), now, TimePoint::min(),
           now - agent_session->heard);
    SettleContests(now);
    return Forward();
  }
  session_table_.Disconnect(*agent_session, why, now);
  agent_session->job->SetOutOfTouch(agent_session->id, true);
  agent_session->job->Remark(
      agent_session->node_id,
      absl::StrCat("is out of touch: ", why, "; it has ",
                   base::Seconds(*agent_session->lease_ends - now), " to come back"));
  Forward();
}

void Coordinator::AgentDied(const SessionToken& session, TimePoint now) {
  SessionEntry* const agent_session = session_table_.FindBySession(session);
  if (agent_session == nullptr) return;
  Remove(*agent_session, "was lost: its agent died, and so did its workers", now, TimePoint::min(),
         now - agent_session->heard);
  SettleContests(now);
  Forward();
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
  if (now - *due > kHalt) session_table_.BearHalt(now);
  EndLeases(now);
  jobs_.Tick(now);
  jobs_.ForgetAbandoned(now);
  SettleContests(now);
  Forward();
}

void Coordinator::EndLeases(TimePoint now) {
  while (SessionEntry* const lost = session_table_.FirstLost(now)) {
    std::string why = lost->disconnected;
    if (why.empty()) {
      const std::string silence = base::Seconds(SelfFenceAfter(lost->lease));
      why = absl::StrCat("nothing was heard from it for ", silence);
      Tell(lost->agent, Evicted{absl::StrCat("nothing was heard from this node for ", silence,
                                             ", and it has lost its place")});
    }
    // The agent is given up before its lease is over, and its workers may run until then.
    Remove(*lost, absl::StrCat("was lost: ", why), now, lost->gone_by, now - lost->heard);
  }
}

std::optional<TimePoint> Coordinator::NextDeadline() const {
  if (is_deaf_) return std::nullopt;
  return base::Earliest(session_table_.NextLeaseEnd(), jobs_.NextDeadline());
}

void Coordinator::Remove(SessionEntry& agent_session, const std::string& why, TimePoint now,
                         TimePoint gone_by, std::optional<Duration> silence) {
  const AttendeeId id = agent_session.id;
  Job* const job = agent_session.job;
  ended_sessions_.Add(agent_session.session, agent_session.agent, agent_session.connection, now);
  session_table_.Remove(agent_session);
  job->Leave(id, why, now, gone_by, silence);
  // Before anything else is removed: otherwise an attendee that is told to start and is lost in the
  // same call would miss the directive.
  Forward();
  if (job->is_over()) jobs_.Forget(*job, now);
}

void Coordinator::Tell(AgentId agent, Directive directive) {
  outbox_.directives.emplace_back(agent, std::move(directive));
}

void Coordinator::Forward() {
  if (from_jobs_.empty()) return;  // as after a keep-alive, by far the most frequent event
  Outbox said = std::exchange(from_jobs_, {});
  outbox_.changed_jobs.merge(said.changed_jobs);
  for (Transition& transition : said.transitions) {
    outbox_.transitions.push_back(std::move(transition));
  }
  std::move(said.forgotten_jobs.begin(), said.forgotten_jobs.end(),
            std::back_inserter(outbox_.forgotten_jobs));
  outbox_.directives.reserve(outbox_.directives.size() + said.directives.size());
  for (Outgoing& outgoing : said.directives) {
    // An attendee that is out of touch gets it again when it comes back; one that has left needs
    // nothing.
    const SessionEntry* const agent_session = session_table_.Find(outgoing.to);
    if (agent_session == nullptr || agent_session->agent == 0) continue;
    outbox_.directives.emplace_back(agent_session->agent, std::move(outgoing.shared));
  }
}

std::optional<JobRecord> Coordinator::Record(std::string_view run_id, TimePoint now) const {
  std::optional<JobRecord> record = jobs_.Record(run_id, now);
  if (!record) return std::nullopt;
  for (AttendeeRecord& attendee : record->attendees) {
    const SessionEntry& agent_session = session_table_.at(attendee.id);
    attendee.session = agent_session.session;
    attendee.lease = agent_session.lease;
    attendee.keep_alive = agent_session.keep_alive;
  }
  return record;
}

bool Coordinator::Restore(const JobRecord& record, TimePoint now) {
  if (jobs_.Find(record.run_id) != nullptr) return false;
  std::set<AttendeeId> attendees;
  for (const AttendeeRecord& attendee : record.attendees) {
    const bool known = session_table_.Find(attendee.id) != nullptr;
    if (known || !attendees.insert(attendee.id).second) return false;
  }
  is_deaf_ = true;
  if (record.attendees.empty() && record.verdict) {
    // A lost node's lease starts over, as below.
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
    session_table_.Add({.id = attendee.id,
                        .job = &job,
                        .node_id = attendee.node->node_id,
                        .session = attendee.session,
                        .keep_alive = attendee.keep_alive,
                        .lease = attendee.lease,
                        .lease_ends = lost_at,
                        .gone_by = lost_at,
                        .heard = now,
                        .disconnected = "it did not reconnect after the rendezvous was restarted"});
  }
  // A lost node for which the round is held does not know that it is lost. It may have noticed in
  // time that this daemon was dead, and counts its lease from then on, as the others do.
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
  session_table_.BeginToServe(now);
  jobs_.BeginToServe(now);
}

KeyValueStore* Coordinator::FindStore(std::string_view run_id) {
  Job* const job = jobs_.Find(run_id);
  return job == nullptr ? nullptr : &job->store();
}

}  // namespace muster::rendezvous
