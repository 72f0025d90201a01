#include "rendezvous/core/job/job.h"

#include <cstdlib>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/earliest.h"
#include "base/phrases.h"
#include "rendezvous/core/job/assignments.h"
#include "rendezvous/core/phrases.h"

namespace muster::rendezvous {

Job::Job(std::string run_id, Incarnation incarnation, const JobSettings& settings, TimePoint now,
         Outbox* outbox, ByteBudget* store_bytes)
    : run_id_(std::move(run_id)),
      incarnation_(incarnation),
      settings_(settings),
      outbox_(outbox),
      store_({}, store_bytes),
      budget_(settings),
      history_(0, now),
      progress_(settings.straggler_threshold) {
  round_.emplace(0, settings_, std::vector<Round::Returning>{}, now);
}

Job::Job(const JobRecord& record, TimePoint now, Outbox* outbox, ByteBudget* store_bytes)
    : run_id_(record.run_id),
      incarnation_(record.incarnation),
      settings_(record.settings),
      outbox_(outbox),
      restored_(now),
      started_(record.started),
      store_({}, store_bytes),
      roster_(record, now),
      succeeded_(record.succeeded.begin(), record.succeeded.end()),
      rounds_run_(record.rounds_run),
      budget_(record, now),
      over_reason_(record.over_reason),
      history_(record.history, record.round.number, now),
      progress_(record.settings.straggler_threshold),
      verdict_(record.verdict) {
  round_.emplace(record.round, settings_, now);
  if (started_) {
    for (const Placement& member : round_->members()) {
      const std::string& node_id = member.node->node_id;
      if (!roster_.HasNode(node_id)) round_->Leave(node_id, now);
    }
    MakeAssignments();
    ResumeHistory(now);
    // Its workers may have succeeded before it left.
    RememberPlaces(roster_.AttendeesOf(round_->members()));
  }
  if (verdict_) PrepareVerdict();
}

void Job::BeginToServe(TimePoint now) {
  round_->Delay(now - restored_);
  roster_.Delay(now - restored_);
  if (!verdict_ && !started_) reminder_.Begin(now);
}

void Job::ResumeHistory(TimePoint now) {
  if (!history_.started()) history_.Start(round_->members(), now);
  for (const auto& [agent, attendee] : roster_.attendees()) {
    if (attendee.has_rank() && attendee.state == NodeState::kStarting) ++starting_;
  }
  if (starting_ == 0 && !verdict_) history_.Run(now);
}

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

void Job::Join(AttendeeId agent, const NodeInfo& newcomer, RoundNumber after, TimePoint now) {
  const bool attends = roster_.Contains(agent);
  Attendee& attendee = roster_.FindOrAdd(agent);
  // Said before, and heard already: it is in the round, or among those who wait for a place.
  const bool waits = attendee.waits();
  // Or said before it heard that it was to start workers, which may run by now.
  const bool old = after < attendee.ran;
  if (!verdict_ && attends && (waits || old)) return;
  // Said before it heard that it may leave, and that may have been lost with its connection.
  if (!verdict_ && attendee.leaving) return Tell(agent, LeaveAnswer{.may_leave = true});
  Changed();
  // A member that joins has no workers any more, told or not; the others cannot go on without them.
  if (!verdict_ && attendee.has_rank()) {
    attendee.stopped = true;
    NextRound(RoundEnd::kNodeRejoined, absl::StrCat("node ", attendee.node->host, " rejoined"),
              now);
    attendee.stopped = false;
  }
  const SharedNode node = newcomer;
  roster_.Enter(agent, node, now);
  if (verdict_) {
    Log(node->node_id, "came too late");
    Tell(agent, VerdictFor(attendee));
    return;
  }
  switch (round_->Join(node, now)) {
    case Round::JoinOutcome::kMember:
      Log(node->node_id, absl::StrCat("joined with ", base::Count(node->slots, "worker")));
      reminder_.Begin(now);
      FollowRound(now);
      break;
    case Round::JoinOutcome::kAgain:  // another agent's node id, or an agent that was forgotten
      break;
    case Round::JoinOutcome::kSpare:
      attendee.Become(NodeState::kSpare, now);
      Log(node->node_id, "joined as a spare");
      HaveWait(agent, round_->ExplainSpare(), /*spare=*/true);
      break;
    case Round::JoinOutcome::kTooLate:
      attendee.Become(NodeState::kSpare, now);
      if (settings_.scale_up == ScaleUp::kNextRestart) {
        Log(node->node_id, "joined for the next restart");
        HaveWait(agent,
                 absl::StrCat("round ", round_->number(),
                              " runs and takes no newcomers (--scale-up=next-restart); "
                              "this node gets its place at the next restart"),
                 /*spare=*/true);
      } else if (AnySucceeded()) {
        // The job is on its last steps; starting it over for a newcomer would undo finished work.
        Log(node->node_id, "joined as a spare, as workers have already finished");
        HaveWait(agent,
                 absl::StrCat("workers of round ", round_->number(),
                              " have already finished; this node is a spare and is needed only if "
                              "another is lost"),
                 /*spare=*/true);
      } else {
        NextRound(RoundEnd::kNodeJoined, absl::StrCat("node ", node->host, " joined"), now);
      }
      break;
  }
}

void Job::WorkersStarted(AttendeeId agent, RoundId round, TimePoint now) {
  if (!IsCurrent(agent, round)) return Fence(agent, round);
  Attendee& attendee = roster_.at(agent);
  if (attendee.state != NodeState::kStarting) return;
  Changed();
  attendee.Become(NodeState::kRunning, now);
  Log(attendee.node->node_id,
      absl::StrCat("started ", base::Count(attendee.node->slots, "worker")));
  MemberStarted(now);
}

void Job::MemberStarted(TimePoint now) {
  if (--starting_ == 0) outbox_->transitions.back().milestone = history_.Run(now);
}

void Job::WorkersExited(AttendeeId agent, RoundId round, const WorkersOutcome& outcome,
                        Duration failed_ago, TimePoint now) {
  if (!IsCurrent(agent, round)) return Fence(agent, round);
  Attendee& attendee = roster_.at(agent);
  if (attendee.state == NodeState::kSucceeded) return;
  Changed();
  if (outcome.succeeded) {
    const bool had_started = attendee.state == NodeState::kRunning;
    attendee.Become(NodeState::kSucceeded, now);
    succeeded_.insert(attendee.group_rank);
    Log(attendee.node->node_id, "its workers have succeeded");
    if (!had_started) MemberStarted(now);
    if (succeeded_.size() == round_->members().size()) {
      End(SucceededVerdict(Facts(), round_->members()), now);
    }
    return;
  }

  // No worker has failed before its round began, whatever its node says.
  failed_ago = std::min(failed_ago, history_.AgeOfRound(now));
  const WorkerFailure failure = outcome.failure.value_or(WorkerFailure{});
  const std::string what = DescribeFailure(failure);
  Log(attendee.node->node_id, what);
  history_.Fail(failure.rank);
  if (const Attendee* const missing = roster_.FindOutOfTouchMember();
      missing != nullptr && !failure.final) {
    return NextRound(RoundEnd::kNodeOutOfTouch,
                     absl::StrCat("node ", missing->node->host, " is out of touch, and ", what),
                     now, TimePoint::min(), failed_ago);
  }
  budget_.Count(failure);
  const RestartDecision decision = budget_.Decide(failure, now);
  if (const auto* const after = std::get_if<RestartAfter>(&decision)) {
    return Restart(what, after->delay, failed_ago, now);
  }
  End(WorkerFailedVerdict(Facts(), round.number, failure, std::get<NoRestart>(decision).because),
      now, failed_ago);
}

void Job::SetHeard(AttendeeId agent, TimePoint now) {
  if (roster_.Contains(agent)) roster_.at(agent).heard = now;
}

void Job::OnProgress(AttendeeId agent, const Progress& progress, TimePoint now) {
  if (!IsCurrent(agent, progress.round)) return;
  const Attendee& attendee = roster_.at(agent);
  const int first_rank = AssignmentOf(attendee.group_rank).base_rank;
  const int slots = attendee.node->slots;
  if (progress.troubles && progress_.HearTroubles(*progress.troubles, first_rank, slots, now)) {
    Log(attendee.node->node_id, InWords(progress_.DescribeTroubles(first_rank, now)));
  }
  if (progress.ranks.empty()) return;
  if (progress_.empty()) Log(attendee.node->node_id, "is the first to tell of steps");
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

void Job::Restart(const std::string& what, Duration delay, Duration detected, TimePoint now) {
  budget_.Spend(now);
  const std::string spent = absl::StrCat(what, " (", budget_.SpentInWords());
  const bool at_once = delay == Duration::zero();
  NextRound(RoundEnd::kWorkerFailed,
            at_once ? spent + ")" : absl::StrCat(spent, ", after ", base::Seconds(delay), ")"), now,
            at_once ? TimePoint::min() : now + delay, detected);
}

void Job::Leaving(AttendeeId agent, const std::string& why, TimePoint now) {
  Attendee& attendee = roster_.at(agent);
  if (attendee.leaving || verdict_) return;
  Changed();
  attendee.leaving = true;
  // Without workers that still run there is nothing to wait for: its Leave follows at once.
  if (!attendee.has_rank() || attendee.state == NodeState::kSucceeded) {
    Log(attendee.node->node_id, absl::StrCat("is leaving: ", why));
    if (!attendee.waits()) return;
    // It gets no place any more, and whoever is spare may have the one that it had.
    round_->Leave(attendee.node->node_id, now);
    return FollowRound(now);
  }
  NextRound(RoundEnd::kNodeLeaving,
            absl::StrCat("node ", attendee.node->host, " is leaving: ", why), now);
}

void Job::AskToLeave(AttendeeId agent, RoundId round, const std::string& why, TimePoint now) {
  Attendee& attendee = roster_.at(agent);
  if (verdict_) return;  // which it has been told
  // It asks again, as the answer may have been lost with its connection.
  if (attendee.leaving) return Tell(agent, LeaveAnswer{.may_leave = true});
  // The round may be over by now, if it is the node's last. One that waits for a place has none.
  if (!attendee.waits() && round != RoundId{incarnation_, attendee.ran}) return Fence(agent, round);
  if (std::string why_not = WhyItStays(agent); !why_not.empty()) {
    if (why_not != attendee.told_to_stay) {
      attendee.told_to_stay = why_not;
      Log(attendee.node->node_id, absl::StrCat("has to stay, although ", why, ": ", why_not));
    }
    return Tell(agent, LeaveAnswer{.may_leave = false, .why_not = std::move(why_not)});
  }
  Tell(agent, LeaveAnswer{.may_leave = true});
  Leaving(agent, why, now);
}

std::string Job::WhyItStays(AttendeeId agent) const {
  if (AnySucceeded() && !roster_.at(agent).waits()) {
    return "workers of other nodes have finished, and would have to begin again";
  }
  const int others = roster_.CountOthersThatStay(agent);
  if (others >= settings_.min_nodes) return "";
  const std::string why = WhyNodeIsNeeded(settings_.min_nodes, settings_.max_nodes, others + 1);
  const bool is_elastic = settings_.min_nodes < settings_.max_nodes;
  return is_elastic && roster_.FindOutOfTouchMember() != nullptr ? why + " in touch" : why;
}

void Job::Leave(AttendeeId agent, const std::string& why, TimePoint now, TimePoint gone_by,
                std::optional<Duration> silence) {
  Changed();
  const Attendee attendee = roster_.Remove(agent, gone_by);
  Log(attendee.node->node_id, why);
  if (verdict_) return;
  if (attendee.state == NodeState::kStopping) round_->HoldUntil(gone_by, now);
  round_->Leave(attendee.node->node_id, now);
  const bool its_workers_are_missed =
      attendee.has_rank() && attendee.state != NodeState::kSucceeded;
  if (its_workers_are_missed) {
    NextRound(RoundEnd::kNodeLost, absl::StrCat("node ", attendee.node->host, " ", why), now,
              gone_by, silence);
  } else {
    FollowRound(now);
  }
}

std::optional<AttendeeId> Job::HolderOfRank(const NodeInfo& newcomer) const {
  if (!settings_.exact_ranks || verdict_) return std::nullopt;
  return roster_.FindByRankHint(newcomer.rank_hint);
}

ContestedRank Job::Contest(const NodeInfo& newcomer, AttendeeId holder) const {
  return {run_id_, newcomer.rank_hint.value_or(0), HostOf(holder), newcomer.host};
}

void Job::DefendRank(const ContestedRank& contest, AttendeeId holder, TimePoint now) {
  if (rounds_run_ == 0) return Close(contest.Clash(), now);
  Tell(holder, Notice{contest.Warning()});
}

void Job::Close(const std::string& why, TimePoint now) {
  if (!verdict_) End(ClosedVerdict(Facts(), why), now);
}

void Job::Tick(TimePoint now) {
  if (verdict_) return;
  if (const auto due = round_->NextDeadline(); due && *due <= now) Changed();
  round_->Tick(now);
  FollowRound(now);
  if (!verdict_ && reminder_.IsDue(now)) RemindWaiting(now);
}

std::optional<TimePoint> Job::NextDeadline() const {
  if (verdict_) return std::nullopt;
  return base::Earliest(round_->NextDeadline(), reminder_.next());
}

void Job::NextRound(RoundEnd why, const std::string& reason, TimePoint now, TimePoint earliest,
                    std::optional<Duration> detected) {
  Changed();
  std::vector<Round::Returning> returning;
  const auto stop = std::make_shared<const Directive>(Stop{round_->number(), reason, incarnation_});
  outbox_->directives.reserve(outbox_->directives.size() + roster_.attendees().size());
  for (auto& [agent, attendee] : roster_.attendees()) {
    if (!attendee.has_rank()) continue;
    returning.push_back({attendee.node->node_id, attendee.node->host, attendee.group_rank});
    attendee.group_rank = -1;
    attendee.Become(NodeState::kStopping, now);
    if (!attendee.leaving && !attendee.stopped) Tell(agent, stop);
  }
  LogMilestone(absl::StrCat("is over: ", reason),
               history_.End(why, reason, round_->number() + 1, detected, now));
  over_reason_ = reason;
  round_.emplace(round_->number() + 1, settings_, returning, now, earliest);
  started_ = false;
  assignments_.clear();
  progress_.Clear();
  succeeded_.clear();
  reminder_.Begin(now);
  for (auto& [agent, attendee] : roster_.attendees()) {
    if (attendee.state != NodeState::kSpare || attendee.leaving) continue;
    if (round_->Join(attendee.node, now) == Round::JoinOutcome::kMember) {
      attendee.Become(NodeState::kJoined, now);
    }
  }
  FollowRound(now);
}

void Job::FollowRound(TimePoint now) {
  if (round_->state() == Round::State::kTimedOut) {
    End(JoinTimeoutVerdict(Facts(), round_->Explain(now)), now);
  } else if (round_->state() == Round::State::kComplete && !started_) {
    StartMembers(now);
  }
}

void Job::StartMembers(TimePoint now) {
  Changed();
  started_ = true;
  ++rounds_run_;
  reminder_.End();
  // It goes on without them: when the others leave, nobody waits for these any more.
  roster_.ForgetLost();
  const std::vector<Placement>& members = round_->members();
  starting_ = static_cast<int>(members.size());
  MakeAssignments();
  const std::vector<Roster::Entry*> attendees = roster_.AttendeesOf(members);
  outbox_->directives.reserve(outbox_->directives.size() + members.size());
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    // A member that does not attend, or ranks with a gap, would start a job that can never meet.
    if (members[rank].group_rank != rank || attendees[rank] == nullptr) std::abort();
    auto& [agent, attendee] = *attendees[rank];
    attendee.Become(NodeState::kStarting, now);
    attendee.group_rank = rank;
    attendee.ran = round_->number();
    Tell(agent, assignments_[rank]);
  }
  RememberPlaces(attendees);
  // What a complete round says does not depend on the time.
  LogMilestone(absl::StrCat("starts: ", round_->Explain(TimePoint{})),
               history_.Start(members, now));
}

void Job::MakeAssignments() {
  assignments_ =
      rendezvous::MakeAssignments({run_id_, incarnation_, round_->number(), budget_.spent(),
                                   settings_.max_restarts, settings_.store_tunnel},
                                  round_->members());
}

const Assignment& Job::AssignmentOf(int group_rank) const {
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

void Job::SetOutOfTouch(AttendeeId agent, bool out_of_touch) {
  roster_.at(agent).out_of_touch = out_of_touch;
}

void Job::TellAgain(AttendeeId agent) {
  const Attendee& attendee = roster_.at(agent);
  if (verdict_) return Tell(agent, VerdictFor(attendee));
  switch (attendee.state) {
    case NodeState::kStarting:
    case NodeState::kRunning:
    case NodeState::kSucceeded:
      return Tell(agent, assignments_[attendee.group_rank]);
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

void Job::Remark(const std::string& node_id, const std::string& what) {
  Log(node_id, what);
}

void Job::NotifyAll(const std::string& sentence) {
  const auto notice = std::make_shared<const Directive>(Notice{sentence});
  for (const auto& [agent, attendee] : roster_.attendees()) Tell(agent, notice);
}

JobFacts Job::Facts() const {
  return {run_id_, rounds_run_, budget_.spent()};
}

void Job::End(Verdict verdict, TimePoint now, std::optional<Duration> detected) {
  Changed();
  verdict_ = std::move(verdict);
  reminder_.End();
  history_.Finish(detected, now);
  LogMilestone(verdict_->sentence, JobEnded{verdict_->kind, detected});
  PrepareVerdict();
  for (const auto& [agent, attendee] : roster_.attendees()) Tell(agent, VerdictFor(attendee));
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

bool Job::IsCurrent(AttendeeId agent, RoundId round) const {
  const bool runs = round.incarnation == incarnation_ && round.number == round_->number();
  return !verdict_ && runs && roster_.at(agent).has_rank();
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
    // Nothing was told before they were made.
    if (node.group_rank < 0) continue;
    const int first_rank = AssignmentOf(node.group_rank).base_rank;
    node.ranks = progress_.Describe(first_rank, node.node.slots, now);
    node.troubles = progress_.DescribeTroubles(first_rank, now);
  }
  return snapshot;
}

void Job::Tell(AttendeeId agent, std::shared_ptr<const Directive> directive) {
  outbox_->directives.emplace_back(agent, std::move(directive));
}

void Job::Tell(AttendeeId agent, Directive directive) {
  outbox_->directives.emplace_back(agent, std::move(directive));
}

void Job::HaveWait(AttendeeId agent, const std::string& why, bool spare) {
  Tell(agent, WaitFor(why, spare));
}

// A terminal may show several jobs, and a mistyped --rdzv-id is a job of its own that waits for
// ever.
Waiting Job::WaitFor(const std::string& why, bool spare) const {
  return {round_->number(), absl::StrCat("job '", run_id_, "': ", why), spare};
}

void Job::Log(const std::string& node_id, std::string text) {
  outbox_->transitions.push_back({run_id_, round_->number(), node_id, std::move(text)});
}

template <typename Milestone>
void Job::LogMilestone(std::string text, Milestone milestone) {
  Log("", std::move(text));
  outbox_->transitions.back().milestone = std::move(milestone);
}

}  // namespace muster::rendezvous
