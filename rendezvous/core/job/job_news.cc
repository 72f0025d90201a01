// What a job says: to its nodes, to the log, to those who look at it, and to the journal.
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rendezvous/core/job/job.h"

namespace muster::rendezvous {

JobRecord Job::Record(TimePoint now) const {
  JobRecord record{.run_id = run_id_,
                   .incarnation = incarnation_,
                   .settings = settings_,
                   .round = round_->Record(now),
                   .started = started_,
                   .succeeded = {succeeded_.begin(), succeeded_.end()},
                   .rounds_run = rounds_run_,
                   .restarts = budget_.spent(),
                   .restart_ages = budget_.Ages(now),
                   .repeated = budget_.repeated(),
                   .over_reason = over_reason_,
                   .verdict = verdict_,
                   .history = history_.Describe(now)};
  roster_.Record(now, record);
  return record;
}

JobRecord Job::RecordEnd(TimePoint now) const {
  return {.run_id = run_id_,
          .incarnation = incarnation_,
          .settings = settings_,
          .restarts = budget_.spent(),
          .verdict = verdict_,
          .history = history_.Describe(now)};
}

void Job::MakeAssignments() {
  assignments_ =
      rendezvous::MakeAssignments({run_id_, incarnation_, round_->number(), budget_.spent(),
                                   settings_.max_restarts, settings_.store_tunnel},
                                  round_->members());
  MUSTER_CHECK(assignments_.size() == round_->members().size());
}

const Assignment& Job::AssignmentOf(int group_rank) const {
  MUSTER_CHECK(group_rank >= 0 && group_rank < static_cast<int>(assignments_.size()));
  return std::get<Assignment>(*assignments_[group_rank]);
}

void Job::RememberPlaces(const std::vector<Roster::Entry*>& attendees) {
  std::vector<AttendeeId> agents;
  agents.reserve(attendees.size());
  for (const Roster::Entry* attendee : attendees) {
    agents.push_back(attendee == nullptr ? 0 : attendee->first);
  }
  log_places_.Start(PlacesOf(round_->number(), over_reason_, round_->members(), agents));
}

void Job::TellAgain(AttendeeId agent) {
  const Attendee& attendee = roster_.at(agent);
  if (verdict_) return Tell(agent, VerdictFor(attendee));
  switch (attendee.state) {
    case NodeState::kStarting:
    case NodeState::kRunning:
    case NodeState::kSucceeded:
      MUSTER_CHECK(attendee.has_rank());
      return Tell(agent, assignments_.at(attendee.group_rank));
    case NodeState::kStopping:
      // It knows, or asks again whether it may leave.
      if (attendee.leaving) return;
      return Tell(agent, Stop{attendee.ran,
                              attendee.ran == round_->number() - 1
                                  ? over_reason_
                                  : "it ended while this node was out of touch",
                              incarnation_});
    case NodeState::kJoined:
    case NodeState::kSpare:
      return;
  }
}

void Job::NotifyAll(const std::string& sentence) {
  const auto notice = std::make_shared<const Directive>(Notice{sentence});
  for (const auto& [agent, attendee] : roster_.attendees()) Tell(agent, notice);
}

void Job::PrepareVerdict() {
  whole_verdict_ = std::make_shared<const Directive>(*verdict_);
  if (roster_.attendees().size() <= kFullVerdicts) return;
  brief_verdict_ = std::make_shared<const Directive>(WithoutQuotes(*verdict_));
}

const std::shared_ptr<const Directive>& Job::VerdictFor(const Attendee& attendee) const {
  if (brief_verdict_ == nullptr) return whole_verdict_;
  const bool has_low_rank =
      attendee.group_rank >= 0 && attendee.group_rank < static_cast<int>(kFullVerdicts);
  const bool has_failed =
      verdict_->root_cause && attendee.node->node_id == verdict_->root_cause->node_id;
  return has_low_rank || has_failed ? whole_verdict_ : brief_verdict_;
}

void Job::Fence(AttendeeId agent, RoundId round) {
  const bool ours = round.incarnation == incarnation_;
  const bool over = verdict_.has_value() || (ours && round.number < round_->number());
  Tell(agent, Fenced{round.number,
                     absl::StrCat("fenced: round ", round.number,
                                  over   ? " is over"
                                  : ours ? " does not run this node"
                                         : " belongs to an earlier life of this job"),
                     round.incarnation});
}

void Job::RemindWaiting(TimePoint now) {
  if (round_->state() != Round::State::kGathering) return reminder_.End();
  reminder_.Told(now);
  const std::string sentence = round_->Explain(now);
  const auto wait = std::make_shared<const Directive>(WaitFor(sentence, /*spare=*/false));
  for (const auto& [agent, attendee] : roster_.attendees()) {
    if (attendee.state == NodeState::kJoined) Tell(agent, wait);
  }
  Log("", sentence);
}

JobSnapshot Job::Describe(TimePoint now) const {
  JobSnapshot snapshot;
  snapshot.run_id = run_id_;
  snapshot.state = verdict_   ? JobState::kEnded
                   : started_ ? JobState::kRunning
                              : JobState::kGathering;
  snapshot.round = round_->number();
  snapshot.sentence = verdict_ ? verdict_->sentence : round_->Explain(now);
  snapshot.settings = settings_;
  snapshot.restart_count = budget_.spent();
  snapshot.SetHistory(history_.Describe(now));
  if (verdict_) snapshot.outcome = verdict_->kind;
  snapshot.store_keys = store_.NumKeys();
  snapshot.store_bytes = store_.TotalBytes();
  snapshot.log_bytes_lost = log_bytes_lost_;
  snapshot.nodes = roster_.Describe(round_->members(), now);
  for (NodeSnapshot& node : snapshot.nodes) {
    // No rank has reported before Assignments were made.
    if (node.group_rank < 0) continue;
    const int first_rank = AssignmentOf(node.group_rank).base_rank;
    node.ranks = progress_.Describe(first_rank, node.node.slots, now);
    node.alerts = progress_.DescribeRankAlerts(first_rank, now);
  }
  return snapshot;
}

void Job::Tell(AttendeeId agent, std::shared_ptr<const Directive> directive) {
  outbox_->directives.emplace_back(agent, std::move(directive));
}

void Job::Tell(AttendeeId agent, Directive directive) {
  outbox_->directives.emplace_back(agent, std::move(directive));
}

// A terminal may show several jobs, and a mistyped --rdzv-id is a separate job that never starts.
Waiting Job::WaitFor(const std::string& why, bool spare) const {
  return {round_->number(), absl::StrCat("job '", run_id_, "': ", why), spare};
}

void Job::Log(const std::string& node_id, std::string text) {
  outbox_->transitions.push_back({run_id_, round_->number(), node_id, std::move(text)});
}

void Job::OnProgress(AttendeeId agent, const Progress& progress, TimePoint now) {
  if (!IsCurrent(agent, progress.round)) return;
  const Attendee& attendee = roster_.at(agent);
  const int first_rank = AssignmentOf(attendee.group_rank).base_rank;
  const int slots = attendee.node->slots;
  if (progress.alerts && progress_.HearRankAlerts(*progress.alerts, first_rank, slots, now)) {
    Log(attendee.node->node_id, FormatRankAlerts(progress_.DescribeRankAlerts(first_rank, now)));
  }
  if (progress.ranks.empty()) return;
  if (progress_.empty()) Log(attendee.node->node_id, "is the first to report steps");
  TellStragglers(progress_.Hear(progress.ranks, first_rank, slots, now));
}

void Job::TellStragglers(const std::vector<StragglerChange>& changes) {
  if (changes.empty()) return;
  const std::vector<Notice> notices = ExplainAll(changes, [this](int rank) -> const std::string& {
    return MemberWith(rank, round_->members()).node->host;
  });
  for (const Notice& notice : notices) Log("", notice.sentence);
  for (const auto& [agent, attendee] : roster_.attendees()) {
    if (attendee.group_rank != 0) continue;
    for (const Notice& notice : notices) Tell(agent, Directive(notice));
  }
}

}  // namespace muster::rendezvous
