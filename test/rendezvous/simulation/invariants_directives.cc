// The half of Invariants that checks the Coordinator's directives.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "test/rendezvous/simulation/invariants.h"

namespace muster::rendezvous {

void Invariants::HearAll(const Call& event, const Outbox& outbox, TimePoint now) {
  Starting round;
  for (const Outgoing& outgoing : outbox.directives) {
    const auto* assignment = std::get_if<Assignment>(&outgoing.directive());
    const auto found = attendances_.find(outgoing.to);
    if (assignment == nullptr || found == attendances_.end()) {
      CheckRound(std::exchange(round, {}), now);
      Hear(event, outgoing, now);
      continue;
    }
    Attendance& node = found->second;
    if (node.job != round.job) CheckRound(std::exchange(round, {node.job}), now);
    HearAssignment(outgoing.to, node, *assignment);
    round.members.push_back({&node.request.node, assignment});
  }
  CheckRound(round, now);
}

void Invariants::Hear(const Call& event, const Outgoing& outgoing, TimePoint now) {
  const AgentId agent = outgoing.to;
  if (const auto* welcome = std::get_if<Welcome>(&outgoing.directive())) {
    HearWelcome(event, agent, *welcome, now);
    return;
  }
  if (std::holds_alternative<Refused>(outgoing.directive()) ||
      std::holds_alternative<Evicted>(outgoing.directive())) {
    HearRefused(event, agent, now);
    return;
  }
  const auto found = attendances_.find(agent);
  if (found == attendances_.end()) {
    Violate(Check::kAddressee, "a", agent, " does not attend and is told something");
    return;
  }
  Attendance& node = found->second;
  if (const auto* stop = std::get_if<Stop>(&outgoing.directive())) {
    HearStop(agent, node, *stop);
  } else if (const auto* verdict = std::get_if<Verdict>(&outgoing.directive())) {
    HearVerdict(event, node, *verdict, now);
  } else if (const auto* waiting = std::get_if<Waiting>(&outgoing.directive())) {
    HearWaiting(agent, node, *waiting, now);
  }
}

void Invariants::HearWaiting(AgentId agent, Attendance& node, const Waiting& waiting,
                             TimePoint now) {
  if (node.phase != Phase::kAsking) {
    Violate(Check::kOnlyWithCause, "a", agent, " does not wait and is told that it does");
  }
  if (waiting.spare) coverage_.Count(Happening::kSpareWaits);
  // A spare that has got a place of a round that gathers: it may not wait for much longer.
  if (node.spare && !waiting.spare) node.asked = now;
  node.spare = waiting.spare;
}

void Invariants::HearWelcome(const Call& event, AgentId agent, const Welcome& welcome,
                             TimePoint now) {
  if (event.kind != CallKind::kJoin || event.agent != agent || attendances_.contains(agent)) {
    Violate(Check::kOnlyWithCause, "a", agent, " is welcomed without having come");
    return;
  }
  const JoinRequest& request = *event.request;
  if (const auto old = jobs_.find(request.run_id);
      old != jobs_.end() && old->second.attending == 0 &&
      (old->second.settings.min_nodes != request.settings.min_nodes ||
       old->second.settings.max_nodes != request.settings.max_nodes)) {
    // A job that nobody attends gives way to another of its name.
    TimePoint& busy_until = busy_names_[request.run_id];
    busy_until = std::max(busy_until, old->second.gone_by);
    jobs_.erase(old);
    given_way_.insert(request.run_id);
  }
  const auto [found, is_new] = jobs_.try_emplace(request.run_id);
  ModelJob& job = found->second;
  if (is_new) {
    job.run_id = request.run_id;
    job.settings = request.settings;
    job.gathers_since = now;
    job.held_until = std::max(now, busy_names_[job.run_id]);
  }
  if (draining_ || job.settings.min_nodes != request.settings.min_nodes ||
      job.settings.max_nodes != request.settings.max_nodes) {
    Violate(Check::kOnlyWithCause, "a", agent, " is welcomed, though it should be refused");
  }
  if (job.verdict) coverage_.Count(Happening::kJoinAfterEnd);
  job.lost.erase(request.node.node_id);
  ++job.attending;
  attendances_[agent] = {.job = &job,
                         .request = request,
                         .asked = now,
                         .heard = now,
                         .lease = SelfFenceAfter(welcome.lease)};
  if (job.running && static_cast<int>(job.ranks.size()) < job.settings.max_nodes &&
      job.succeeded == 0) {
    RoundIsOver(job, now);
  }
}

void Invariants::HearRefused(const Call& event, AgentId agent, TimePoint now) {
  const auto found = attendances_.find(agent);
  if (found == attendances_.end()) {
    if (event.kind != CallKind::kJoin || event.agent != agent) {
      Violate(Check::kAddressee, "a", agent, " does not attend and is refused");
      return;
    }
    const JobSettings& asked = event.request->settings;
    const auto job = jobs_.find(event.request->run_id);
    const bool fits = job == jobs_.end() || (job->second.settings.min_nodes == asked.min_nodes &&
                                             job->second.settings.max_nodes == asked.max_nodes);
    if (fits && !draining_) {
      Violate(Check::kOnlyWithCause, "a", agent, " is refused without a cause");
    }
    coverage_.Count(Happening::kRefused);
    return;
  }
  const Attendance& node = found->second;
  if (event.kind != CallKind::kTick) {
    Violate(Check::kOnlyWithCause, "a", agent, " attends and is refused");
  } else if (node.lease == Duration::zero() || now - node.heard < node.lease) {
    Violate(Check::kLeases, "a", agent, " is lost after a silence of ",
            (now - node.heard) / std::chrono::milliseconds(1), " ms");
  }
  coverage_.Count(Happening::kLeaseExpired);
  ModelJob& job = *node.job;
  const bool may_have_workers =
      node.phase == Phase::kIdle || (node.phase == Phase::kStarted && !node.succeeded);
  const TimePoint gone_by = node.heard + node.request.settings.lease;
  const std::string lost_node = node.request.node.node_id;
  Forget(agent, now);
  job.gone_by = std::max(job.gone_by, gone_by);
  if (job.rounds > 0) job.lost.insert(lost_node);
  if (may_have_workers && !job.running && !job.verdict) {
    job.held_until = std::max(job.held_until, gone_by);
  }
}

void Invariants::HearAssignment(AgentId agent, Attendance& node, const Assignment& assignment) {
  if (node.phase == Phase::kStarted) {
    Violate(Check::kStopBeforeStart, "a", agent, " is started in round ", assignment.round,
            " and was not told to stop round ", node.round);
  } else if (node.phase == Phase::kIdle && !node.job->verdict) {
    Violate(Check::kStopBeforeStart, "a", agent, " is started in round ", assignment.round,
            " and has not asked");
  }
  if (node.spare) coverage_.Count(Happening::kSparePromoted);
  node.phase = Phase::kStarted;
  node.round = assignment.round;
  node.spare = node.succeeded = false;
}

void Invariants::HearStop(AgentId agent, Attendance& node, const Stop& stop) {
  if (node.job->verdict) {
    Violate(Check::kEndIsEnd, "a", agent, " is stopped after the verdict");
  } else if (node.phase != Phase::kStarted || node.round != stop.round) {
    Violate(Check::kStopBeforeStart, "a", agent, " is told to stop round ", stop.round,
            ", which it does not run");
  } else if (node.job->running) {
    Violate(Check::kOnlyWithCause, "a", agent, " is told to stop round ", stop.round,
            ", to which nothing happened");
  }
  node.phase = Phase::kIdle;
}

void Invariants::HearVerdict(const Call& event, Attendance& node, const Verdict& verdict,
                             TimePoint now) {
  ModelJob& job = *node.job;
  if (!job.verdict) {
    CheckVerdict(event, job, verdict, now);
    job.verdict = verdict;
    job.running = false;
  } else if (*job.verdict != verdict) {
    Violate(Check::kOneVerdict, "job ", job.run_id, " ended with \"", job.verdict->sentence,
            "\" and then with \"", verdict.sentence, "\"");
  }
  if (node.told_verdict) {
    Violate(Check::kOneVerdict, "the verdict of job ", job.run_id, " is told twice to node ",
            node.request.node.node_id);
  }
  node.told_verdict = true;
  node.phase = Phase::kIdle;
}

void Invariants::CheckVerdict(const Call& event, const ModelJob& job, const Verdict& verdict,
                              TimePoint now) {
  bool is_true = false;
  switch (verdict.kind) {
    case VerdictKind::kSucceeded:
      coverage_.Count(Happening::kSucceeded);
      is_true = event.kind == CallKind::kSucceeded && job.must_end;
      break;
    case VerdictKind::kWorkerFailed:
      coverage_.Count(Happening::kWorkerFailed);
      is_true = event.kind == CallKind::kFailed && job.must_end && verdict.root_cause &&
                verdict.root_cause->rank == event.rank;
      break;
    case VerdictKind::kJoinTimeout: {
      coverage_.Count(Happening::kJoinTimeout);
      const auto asking =
          std::count_if(attendances_.begin(), attendances_.end(), [&job](const auto& entry) {
            const Attendance& node = entry.second;
            return node.job == &job && node.phase == Phase::kAsking && !node.leaving;
          });
      is_true = !job.running && now >= job.gathers_since + job.settings.join_timeout &&
                asking < job.settings.min_nodes;
      break;
    }
    case VerdictKind::kClosed:
      coverage_.Count(Happening::kClosed);
      is_true = event.kind == CallKind::kClose;
      break;
  }
  if (!is_true || verdict.rounds != job.rounds || verdict.restarts != job.restarts) {
    Violate(Check::kVerdictIsTrue, "\"", CallText(event), "\" after ", job.rounds, " rounds and ",
            job.restarts, " restarts ended job ", job.run_id, " with \"", verdict.sentence, "\"");
  }
}

void Invariants::CheckRound(const Starting& round, TimePoint now) {
  if (round.job == nullptr) return;
  ModelJob& job = *round.job;
  const std::vector<Member>& members = round.members;
  const int size = static_cast<int>(members.size());
  const Assignment& first = *members[0].assignment;
  const std::string name = absl::StrCat("round ", first.round, " of job ", job.run_id);
  if (job.verdict) Violate(Check::kEndIsEnd, name, " starts after the verdict");
  if (first.round <= job.round) {
    Violate(Check::kRoundsIncrease, name, " comes after round ", job.round);
  }
  if (size < job.settings.min_nodes || size > job.settings.max_nodes) {
    Violate(Check::kRoundSize, name, " has ", size, " nodes");
  }
  if (const std::string objection = RanksObjection(members); !objection.empty()) {
    Violate(Check::kRanksPartition, name, ": ", objection);
  }
  if (first.restart_count != job.restarts || first.restart_count > first.max_restarts ||
      first.max_restarts != job.settings.max_restarts) {
    Violate(Check::kRestartBudget, name, " is told restart ", first.restart_count, " of ",
            first.max_restarts, " after ", job.restarts, " of ", job.settings.max_restarts);
  }
  for (const auto& [agent, node] : attendances_) {
    if (node.job != &job || node.phase == Phase::kStarted || node.round != job.round) continue;
    if (job.round == kNoRound || now >= job.gathers_since + job.settings.join_timeout) continue;
    // It is back, and is about to leave.
    if (node.phase == Phase::kAsking && node.leaving) continue;
    Violate(Check::kPlacesAreKept, name, " starts without a", agent, ", which may still come back");
  }

  std::map<std::string, int> ranks;
  for (const Member& member : members) {
    const int rank = member.assignment->group_rank;
    const std::string& node_id = member.node->node_id;
    ranks[node_id] = rank;
    const auto previous = job.ranks.find(node_id);
    if (previous == job.ranks.end() || previous->second >= size) continue;
    coverage_.Count(Happening::kRankKept);
    if (previous->second == rank) continue;
    Violate(Check::kStickyRanks, "node ", node_id, " had rank ", previous->second, " and gets ",
            rank, " in ", name);
  }

  coverage_.Count(Happening::kRoundStarted);
  const bool first_round = job.round == kNoRound;
  if (!first_round && ranks.size() < job.ranks.size()) coverage_.Count(Happening::kRoundShrank);
  if (!first_round && ranks.size() > job.ranks.size()) coverage_.Count(Happening::kScaleUp);
  if (job.restarts > job.restarts_started) coverage_.Count(Happening::kRestart);
  job.restarts_started = job.restarts;
  job.round = first.round;
  job.ranks = std::move(ranks);
  job.running = true;
  job.lost.clear();
  job.succeeded = 0;
  ++job.rounds;
}

}  // namespace muster::rendezvous
