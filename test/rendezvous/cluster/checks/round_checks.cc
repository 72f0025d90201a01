#include "test/rendezvous/cluster/checks/round_checks.h"

#include <tuple>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

bool Newer(const RoundId& a, const RoundId& b) {
  return std::tie(a.incarnation, a.number) > std::tie(b.incarnation, b.number);
}

std::string Name(const std::string& run_id, const RoundId& round) {
  return absl::StrCat("job ", run_id, ", incarnation ", round.incarnation, ", round ",
                      round.number);
}

}  // namespace

void RoundChecks::Fail(Check check, const Assignment& assignment, const std::string& what) {
  violations_.Add(check, absl::StrCat(Name(assignment.run_id, assignment.id()), ": ", what));
}

void RoundChecks::OnAssignment(const std::string& node, const Assignment& assignment) {
  JobTruth& job = jobs_[assignment.run_id];
  if (Newer(assignment.id(), job.newest)) OnNewRound(job, assignment);
  if (assignment.incarnation != job.newest.incarnation || !job.rounds.contains(assignment.round)) {
    return Fail(Check::kRoundOrder, assignment,
                absl::StrCat(node, " is told to start it after ", Name("", job.newest)));
  }
  RoundTruth& round = job.rounds.at(assignment.round);
  const auto [placed, is_new] = round.nodes.emplace(assignment.group_rank, node);
  if (!is_new && placed->second != node) {
    return Fail(Check::kRanks, assignment,
                absl::StrCat("nodes ", placed->second, " and ", node, " both have group rank ",
                             assignment.group_rank));
  }
  for (const auto& [rank, other] : round.nodes) {
    if (other == node && rank != assignment.group_rank) {
      return Fail(
          Check::kRanks, assignment,
          absl::StrCat("node ", node, " has group ranks ", rank, " and ", assignment.group_rank));
    }
  }
  if (assignment.group_world_size != round.first.group_world_size ||
      assignment.world_size != round.first.world_size ||
      assignment.master_addr != round.first.master_addr ||
      assignment.master_port != round.first.master_port ||
      assignment.group_rank >= assignment.group_world_size ||
      assignment.base_rank >= assignment.world_size) {
    return Fail(Check::kRanks, assignment,
                absl::StrCat(node, " is told of another round than the others"));
  }
  round.ranks[assignment.base_rank] = {assignment.group_rank, 0};
  int last = -1;
  for (const auto& [base, place] : round.ranks) {
    if (place.first <= last) {
      return Fail(Check::kRanks, assignment, "base ranks are not in order of group ranks");
    }
    last = place.first;
  }
  if (assignment.restart_count != round.first.restart_count) {
    Fail(Check::kBudget, assignment,
         absl::StrCat(node, " is told restart ", assignment.restart_count, ", others ",
                      round.first.restart_count));
  }
}

void RoundChecks::ExpectNoNewRound(const std::string& run_id) {
  jobs_[run_id].stays_as_it_is = true;
  incidents_.Count(Incident::kLeftInPeace);
}

void RoundChecks::OnNewRound(JobTruth& job, const Assignment& assignment) {
  if (job.stays_as_it_is) {
    Fail(Check::kUndisturbed, assignment, "it starts, and nothing has ended the round before");
  }
  int restarts_before = 0;
  int failed_rounds = 0;
  if (assignment.incarnation == job.newest.incarnation) {
    const auto before = job.rounds.rbegin();
    restarts_before = before->second.first.restart_count;
    failed_rounds = before->second.failures.empty() ? 0 : 1;
  } else {
    job.rounds.clear();
  }
  job.newest = assignment.id();
  job.rounds[assignment.round].first = assignment;
  if (assignment.restart_count > restarts_before) incidents_.Count(Incident::kRestart);
  if (assignment.restart_count > assignment.max_restarts ||
      assignment.restart_count > restarts_before + failed_rounds ||
      assignment.restart_count < restarts_before) {
    Fail(Check::kBudget, assignment,
         absl::StrCat("restart ", assignment.restart_count, " of ", assignment.max_restarts,
                      " after restart ", restarts_before,
                      failed_rounds > 0 ? " and a failure" : " and no failure"));
  }
  // Old rounds need not be remembered for long.
  while (job.rounds.size() > 8) job.rounds.erase(job.rounds.begin());
}

void RoundChecks::OnWorkersAlive(const std::string& node, const Assignment& assignment) {
  JobTruth& job = jobs_[assignment.run_id];
  for (const auto& [incarnation, number] : job.alive) {
    if (incarnation != assignment.incarnation && !durable_) continue;
    if (incarnation == assignment.incarnation && number == assignment.round) continue;
    Fail(Check::kOverlap, assignment,
         absl::StrCat("workers start on ", node, " while those of ",
                      Name("", {incarnation, number}), " run"));
    break;
  }
  job.alive.emplace(assignment.incarnation, assignment.round);
  ++running_;
}

void RoundChecks::OnWorkersDead(const std::string& node, const Assignment& assignment,
                                TimePoint now) {
  auto& alive = jobs_[assignment.run_id].alive;
  alive.erase(alive.find({assignment.incarnation, assignment.round}));
  --running_;
  // A daemon that remembers its jobs makes all leases longer while it is away.
  if (durable_ || leases_[node] >= now) return;
  Fail(Check::kLongLived, assignment,
       absl::StrCat("the workers of ", node, " have run longer than its lease"));
}

void RoundChecks::OnFailure(const std::string& run_id, RoundId round, int rank,
                            const std::string& host) {
  incidents_.Count(Incident::kWorkerFailed);
  JobTruth& job = jobs_[run_id];
  if (round.incarnation != job.newest.incarnation) return;
  const auto truth = job.rounds.find(round.number);
  if (truth != job.rounds.end()) truth->second.failures.emplace(rank, host);
}

void RoundChecks::OnSuccess(const std::string& run_id, RoundId round, int group_rank) {
  JobTruth& job = jobs_[run_id];
  const auto truth = job.rounds.find(round.number);
  if (round.incarnation == job.newest.incarnation && truth != job.rounds.end()) {
    truth->second.succeeded.insert(group_rank);
  }
}

void RoundChecks::OnVerdict(const std::string& run_id, Incarnation incarnation,
                            const Verdict& verdict, int max_restarts) {
  JobTruth& job = jobs_[run_id];
  const auto [first, is_new] = job.verdicts.emplace(incarnation, verdict);
  const std::string name = absl::StrCat("job ", run_id, ", incarnation ", incarnation, ": ");
  if (!is_new) {
    if (!(first->second == verdict)) {
      violations_.Add(Check::kVerdict,
                      absl::StrCat(name, "one node is told '", first->second.sentence,
                                   "', another '", verdict.sentence, "'"));
    }
    return;
  }
  if (verdict.restarts > max_restarts) {
    violations_.Add(Check::kBudget,
                    absl::StrCat(name, verdict.restarts, " restarts of ", max_restarts));
  }
  if (verdict.kind == VerdictKind::kJoinTimeout) incidents_.Count(Incident::kVerdictTimeout);
  // Those who come back to a job that all others have left hear that it has been closed so.
  const bool left = verdict.sentence.find("its last node has left") != std::string::npos;
  if (verdict.kind == VerdictKind::kClosed && !left) {
    violations_.Add(Check::kVerdict, absl::StrCat(name, "nobody has closed it"));
  }
  if (job.newest.incarnation != incarnation) return;
  if (verdict.kind == VerdictKind::kSucceeded) {
    incidents_.Count(Incident::kVerdictSucceeded);
    const RoundTruth& round = job.rounds.rbegin()->second;
    if (static_cast<int>(round.succeeded.size()) != round.first.group_world_size) {
      violations_.Add(Check::kVerdict,
                      absl::StrCat(name, "'", verdict.sentence, "', but only ",
                                   round.succeeded.size(), " nodes have succeeded"));
    }
  }
  if (verdict.kind == VerdictKind::kWorkerFailed) {
    incidents_.Count(Incident::kVerdictFailed);
    const WorkerFailure cause = verdict.root_cause.value_or(WorkerFailure{});
    bool known = false;
    for (const auto& [number, round] : job.rounds) {
      known = known || round.failures.contains({cause.rank, cause.host});
    }
    if (!known) {
      violations_.Add(Check::kVerdict, absl::StrCat(name, "'", verdict.sentence,
                                                    "', but no such worker has failed"));
    }
  }
}

}  // namespace muster::rendezvous
