// How an agent joins: a session, a job, and a rank that two may ask for.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {

Duration Coordinator::ShortestLease(int max_nodes) const {
  if (!options_.durable) return options_.shortest_lease;
  // `max_nodes` comes from the network and may be any number.
  const int nodes = std::clamp(max_nodes, 0, options_.max_nodes_per_job);
  return std::max(options_.shortest_lease,
                  std::min(nodes * options_.lease_per_node, options_.longest_lease_for_nodes));
}

void Coordinator::Handle(AgentId agent, const JoinRequest& request, TimePoint now) {
  // The answer to its first Join was lost with the connection.
  if (Find(agent) == nullptr && session_table_.FindBySession(request.session) != nullptr) {
    Handle(agent, Resume{request.session, request.connection, request.speaks}, now);
    if (Find(agent) == nullptr) return;
  }
  if (ended_sessions_.SaidBefore(request.session, agent, request.connection)) return;
  contests_.Withdraw(agent);
  SessionEntry* agent_session = Find(agent);
  if (agent_session == nullptr && RanInAnEndedLife(request)) return TellEnd(agent, request);
  if (const Refused refused = Objection(agent_session, request); !refused.sentence.empty()) {
    Tell(agent, refused);
    if (agent_session != nullptr)
      Remove(*agent_session, "broke the protocol: " + refused.sentence, now);
    return;
  }
  if (!request.unfit.empty()) return TurnAwayUnfit(agent, request, now);
  if (agent_session == nullptr) {
    if (Job* const job = jobs_.Find(request.run_id); job != nullptr && GivesWay(*job, request)) {
      jobs_.Forget(*job, now);
    }
    if (const std::optional<AttendeeId> holder = HolderOfRank(request)) {
      return ContestRank(agent, request, *holder, now);
    }
    agent_session = &Open(agent, request, now);
  }
  Renew(*agent_session, now);
  agent_session->job->Join(agent_session->id, request.node, request.after, now);
}

SessionEntry& Coordinator::Open(AgentId agent, const JoinRequest& request, TimePoint now) {
  // An agent that comes back as a new attendee reports the bytes lost since it started, and some of
  // those may have been counted already.
  const bool comes_back = request.ran_in != 0;
  MUSTER_CHECK(Find(agent) == nullptr);
  Job& job = jobs_.FindOrBegin(request.run_id, request.settings, now);
  SessionEntry& agent_session = session_table_.Add(
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
  TellWelcome(agent_session, request.speaks);
  return agent_session;
}

void Coordinator::TellWelcome(const SessionEntry& agent_session, const SpokenVersions& speaks) {
  Tell(agent_session.agent, Welcome{.keep_alive = agent_session.keep_alive,
                                    .lease = agent_session.lease,
                                    .incarnation = agent_session.job->incarnation(),
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
  Tell(agent, Refused{absl::StrCat("the job '", request.run_id,
                                   "' in which this node ran workers has ended; its outcome is "
                                   "no longer known")});
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
  const SessionEntry& defender = session_table_.at(holder);
  // That agent runs in this very process, so it is certainly there.
  if (defender.lease == Duration::zero()) return RefuseRank(agent, request, holder, now);
  contests_.Open(agent, request, holder);
  Tell(agent, Waiting{kNoRound, defender.job->Contest(request.node, holder).Question()});
}

void Coordinator::RefuseRank(AgentId agent, const JoinRequest& request, AttendeeId holder,
                             TimePoint now) {
  Job& job = *session_table_.at(holder).job;
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
      // It may have to wait for another holder, whose contest is settled later.
      Handle(last, contest->request, now);
    }
  }
}

void Coordinator::TurnAwayUnfit(AgentId agent, const JoinRequest& request, TimePoint now) {
  Tell(agent, Refused{absl::StrCat("this node cannot take part: ", request.unfit)});
  const std::string what = absl::StrCat("does not take part: ", request.unfit);
  SessionEntry* const agent_session = Find(agent);
  if (agent_session != nullptr) Remove(*agent_session, what, now);
  // The removal may have ended the job.
  if (Job* const job = jobs_.Find(request.run_id); job != nullptr) {
    if (agent_session == nullptr) job->Remark(request.node.node_id, what);
    job->NotifyAll(absl::StrCat("node ", request.node.host, " ", what));
  }
}

}  // namespace muster::rendezvous
