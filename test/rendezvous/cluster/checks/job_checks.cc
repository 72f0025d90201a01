#include "test/rendezvous/cluster/checks/job_checks.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// How late the timer of a round may be, which a process that stands still makes later.
constexpr Duration kRoundMayBeLate = std::chrono::seconds(30);
// What times lose when they are written, in milliseconds, and read by one daemon after another.
constexpr Duration kLostByRestarts = std::chrono::milliseconds(100);

bool Waits(const AttendeeRecord& attendee) {
  return attendee.state == NodeState::kJoined || attendee.state == NodeState::kSpare;
}

const AttendeeRecord* Find(const JobRecord& job, const SessionToken& session) {
  const auto found = std::find_if(job.attendees.begin(), job.attendees.end(),
                                  [&](const AttendeeRecord& a) { return a.session == session; });
  return found == job.attendees.end() ? nullptr : &*found;
}

bool Runs(const JobRecord& job) {
  return job.round.complete && !job.verdict;
}

}  // namespace

void JobChecks::Fail(Check check, const JobRecord& job, const std::string& what) {
  violations_.Add(check,
                  absl::StrCat("job ", job.run_id, ", round ", job.round.number, ": ", what));
}

void JobChecks::OnChange(const std::string& run_id, const std::optional<JobRecord>& job) {
  if (!job) {
    jobs_.erase(run_id);
    return;
  }
  const auto [found, is_new] = jobs_.try_emplace(run_id);
  Known& known = found->second;
  if (!is_new && known.job.incarnation == job->incarnation) {
    CheckStep(known.job, *job);
  } else {
    known = {};
  }
  known.job = *job;
  // One that was lost may come back, and has no rank to keep.
  std::erase_if(known.ranks, [&](const auto& rank) {
    return std::none_of(job->attendees.begin(), job->attendees.end(),
                        [&](const auto& each) { return each.node->node_id == rank.first; });
  });
  CheckState(*job);
  if (Runs(*job) && known.started != job->round.number) Start(known);
}

void JobChecks::CheckState(const JobRecord& job) {
  if (job.attendees.empty() && (job.round.complete || job.lost.empty())) {
    Fail(Check::kForgotten, job, "nobody attends or can come back, and it is not forgotten");
  }
  if (job.restarts > job.settings.max_restarts) {
    Fail(Check::kBudget, job, absl::StrCat(job.restarts, " of ", job.settings.max_restarts));
  }
  if (static_cast<int>(job.round.joined.size()) > job.settings.max_nodes) {
    Fail(Check::kMembers, job, absl::StrCat(job.round.joined.size(), " nodes have a place"));
  }
  if (Runs(job)) CheckMembers(job);
}

void JobChecks::CheckMembers(const JobRecord& job) {
  const std::vector<Placement>& members = job.round.members;
  const int size = static_cast<int>(members.size());
  if (size < job.settings.min_nodes || size > job.settings.max_nodes) {
    Fail(Check::kMembers, job, absl::StrCat("it runs with ", size, " nodes"));
  }
  for (int rank = 0; rank < size; ++rank) {
    if (members[rank].group_rank != rank) Fail(Check::kRanks, job, "its ranks have gaps");
  }
  int with_rank = 0;
  for (const AttendeeRecord& attendee : job.attendees) {
    const std::string& node_id = attendee.node->node_id;
    if (attendee.group_rank >= size ||
        (attendee.group_rank >= 0 && members[attendee.group_rank].node->node_id != node_id)) {
      Fail(Check::kRanks, job, absl::StrCat("node ", node_id, " has the rank of another"));
    }
    if (attendee.group_rank >= 0) ++with_rank;
    if (attendee.state == NodeState::kStopping) {
      Fail(Check::kMembers, job, absl::StrCat("it runs while ", node_id, " stops the one before"));
    }
    const bool takes_it = job.settings.scale_up != ScaleUp::kNextRestart && job.succeeded.empty();
    if (takes_it && size < job.settings.max_nodes && Waits(attendee) && !attendee.leaving) {
      Fail(Check::kMembers, job, absl::StrCat(node_id, " waits, and there is a place for it"));
    }
  }
  // Those that have succeeded may have left.
  if (with_rank + static_cast<int>(job.succeeded.size()) < size) {
    Fail(Check::kMembers, job, absl::StrCat(with_rank, " of ", size, " nodes attend, and it runs"));
  }
  if (static_cast<int>(job.succeeded.size()) == size) {
    Fail(Check::kVerdict, job, "all of its nodes have succeeded, and there is no verdict");
  }
}

void JobChecks::CheckStep(const JobRecord& before, const JobRecord& after) {
  const bool same_round = after.round.number == before.round.number;
  if (after.round.number < before.round.number ||
      (same_round && before.round.complete &&
       !(after.round.complete && after.round.members == before.round.members))) {
    Fail(Check::kRoundOrder, after,
         absl::StrCat("it follows round ", before.round.number, " or is another than it was"));
  }
  if (before.verdict && (after.verdict != before.verdict || !same_round)) {
    Fail(Check::kVerdict, after, "it goes on after its verdict, or has another");
  }
  if (after.restarts < before.restarts || after.restarts > before.restarts + 1 ||
      (after.restarts > before.restarts && same_round)) {
    Fail(Check::kBudget, after, absl::StrCat(after.restarts, " restarts after ", before.restarts));
  }
  if (after.verdict && !before.verdict) CheckVerdict(before, after);
}

void JobChecks::CheckVerdict(const JobRecord& before, const JobRecord& after) {
  const Verdict& verdict = *after.verdict;
  if (verdict.rounds != after.rounds_run || verdict.restarts != after.restarts) {
    Fail(Check::kVerdict, after,
         absl::StrCat("\"", verdict.sentence, "\" after ", after.rounds_run, " rounds and ",
                      after.restarts, " restarts"));
  }
  if (verdict.kind == VerdictKind::kSucceeded &&
      (!after.round.complete || after.succeeded.size() != after.round.members.size())) {
    Fail(Check::kVerdict, after, absl::StrCat(after.succeeded.size(), " nodes have succeeded"));
  }
  if (verdict.kind == VerdictKind::kJoinTimeout) {
    const bool enough = static_cast<int>(after.round.joined.size()) >= after.settings.min_nodes;
    const bool early =
        after.history.rounds.empty() ||
        after.history.rounds.back().opened_ago + kLostByRestarts < after.settings.join_timeout;
    if (enough || early || before.round.complete || !after.round.outstanding.empty()) {
      Fail(Check::kVerdict, after, absl::StrCat("\"", verdict.sentence, "\", which is not so"));
    }
  }
}

void JobChecks::Start(Known& known) {
  const JobRecord& job = known.job;
  const std::size_t size = job.round.members.size();
  if (known.started && size < known.size) incidents_.Count(Incident::kRoundShrank);
  if (known.started && size > known.size) incidents_.Count(Incident::kRoundGrew);
  std::map<std::string, int> ranks;
  for (const Placement& member : job.round.members) {
    const std::string& node_id = member.node->node_id;
    // A job that is restored may have members that have left, and attend again without that rank.
    const bool has_it = std::any_of(
        job.attendees.begin(), job.attendees.end(), [&](const AttendeeRecord& attendee) {
          return attendee.node->node_id == node_id && attendee.group_rank == member.group_rank;
        });
    if (has_it) ranks[node_id] = member.group_rank;
    const auto before = known.ranks.find(node_id);
    if (before == known.ranks.end() || before->second >= static_cast<int>(size)) continue;
    incidents_.Count(Incident::kRankKept);
    if (before->second == member.group_rank) continue;
    Fail(Check::kRanks, job,
         absl::StrCat("node ", node_id, " had rank ", before->second, ", and has ",
                      member.group_rank));
  }
  known.started = job.round.number;
  known.size = size;
  known.ranks = std::move(ranks);
}

void JobChecks::OnHeard(const SessionToken& session, const Event& event, const JobRecord& before,
                        const std::optional<JobRecord>& after) {
  const AttendeeRecord* const was = Find(before, session);
  if (was == nullptr || before.verdict) return;
  const bool goes_on = after && after->incarnation == before.incarnation && !after->verdict;
  const AttendeeRecord* const is = goes_on ? Find(*after, session) : nullptr;
  if (is == nullptr) return;
  const RoundId current{before.incarnation, before.round.number};
  const bool same_round = after->round.number == before.round.number;
  if (const auto* started = std::get_if<WorkersStarted>(&event)) {
    if (started->round == current && was->state == NodeState::kStarting &&
        is->state != NodeState::kRunning) {
      Fail(Check::kStale, *after, "its workers have started, and that does not count");
    }
  }
  if (const auto* exited = std::get_if<WorkersExited>(&event)) {
    const bool counts = exited->round == current && was->group_rank >= 0;
    const bool counted =
        exited->outcome.succeeded ? is->state == NodeState::kSucceeded : !same_round;
    if (counts && was->state != NodeState::kSucceeded && !counted) {
      Fail(Check::kStale, *after, "its workers have ended, and that does not count");
    }
  } else if (after->restarts != before.restarts) {
    Fail(Check::kBudget, *after, "a restart is counted, and no worker has failed");
  }
  if (!std::holds_alternative<AskToLeave>(event) || was->leaving || !is->leaving) return;
  const auto stay =
      std::count_if(before.attendees.begin(), before.attendees.end(),
                    [was](const AttendeeRecord& each) { return &each != was && !each.leaving; });
  if (stay < before.settings.min_nodes || (!Waits(*was) && !before.succeeded.empty())) {
    Fail(Check::kEnoughStay, before,
         absl::StrCat("a node may leave, ", stay, " stay, and ", before.succeeded.size(),
                      " have succeeded"));
  }
}

void JobChecks::OnAssignment(const Assignment& told) {
  const auto found = jobs_.find(told.run_id);
  if (found == jobs_.end()) return;
  const JobRecord& job = found->second.job;
  // It may be told after its round is over.
  if (!Runs(job) || told.id() != RoundId{job.incarnation, job.round.number}) return;
  const std::vector<Placement>& members = job.round.members;
  const int size = static_cast<int>(members.size());
  Assignment due{.group_world_size = size, .world_size = 0, .role_world_size = 0};
  for (const Placement& member : members) {
    const bool is_before = member.group_rank < told.group_rank;
    const bool has_its_role =
        told.group_rank < size && member.node->role == members[told.group_rank].node->role;
    due.world_size += member.node->slots;
    if (has_its_role) due.role_world_size += member.node->slots;
    if (is_before) due.base_rank += member.node->slots;
    if (is_before && has_its_role) due.role_base_rank += member.node->slots;
  }
  const NodeInfo& first = members.front().node;
  if (told.group_world_size != due.group_world_size || told.world_size != due.world_size ||
      told.role_world_size != due.role_world_size || told.base_rank != due.base_rank ||
      told.role_base_rank != due.role_base_rank || told.master_addr != first.address ||
      told.master_port != first.master_port) {
    Fail(Check::kRanks, job,
         absl::StrCat("group rank ", told.group_rank, " is told other ranks, ",
                      "sizes or another master than it has"));
  }
  if (told.restart_count != job.restarts || told.max_restarts != job.settings.max_restarts) {
    Fail(Check::kBudget, job, absl::StrCat("a node is told restart ", told.restart_count));
  }
}

void JobChecks::OnDescribed(const JobRecord& job, const JobSnapshot& snapshot) {
  const JobState state = job.verdict          ? JobState::kEnded
                         : job.round.complete ? JobState::kRunning
                                              : JobState::kGathering;
  bool agrees = snapshot.state == state && snapshot.round == job.round.number &&
                snapshot.restart_count == job.restarts &&
                snapshot.nodes.size() == job.attendees.size();
  for (const NodeSnapshot& node : snapshot.nodes) {
    agrees = agrees && (node.group_rank < 0 || job.verdict ||
                        (node.group_rank < static_cast<int>(job.round.members.size()) &&
                         job.round.members[node.group_rank].node->node_id == node.node.node_id));
  }
  if (!agrees) {
    Fail(Check::kDescribed, job, absl::StrCat("it is described as \"", snapshot.sentence, "\""));
  }
  const RoundRecord& round = job.round;
  const bool gathers =
      state == JobState::kGathering && round.outstanding.empty() && !round.held_for;
  if (gathers && round.gives_up_in < -kRoundMayBeLate) {
    Fail(Check::kAnswered, job, "it gathers for longer than its join timeout");
  }
}

}  // namespace muster::rendezvous
