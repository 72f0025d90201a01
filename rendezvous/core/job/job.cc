#include "rendezvous/core/job/job.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/durations.h"
#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

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

void Job::Join(AttendeeId agent, const NodeInfo& newcomer, RoundNumber after, TimePoint now) {
  const bool attends = roster_.Contains(agent);
  Attendee& attendee = roster_.FindOrAdd(agent);
  // A repeated Join that was already heard: the node is in the round, or waits for a place.
  const bool waits = attendee.waits();
  // Or sent before the agent heard that it was to start workers, which may be running by now.
  const bool old = after < attendee.ran;
  if (!verdict_ && attends && (waits || old)) return;
  // Sent before the agent heard that it may leave; that answer may have been lost with its
  // connection.
  if (!verdict_ && attendee.leaving) return Tell(agent, LeaveAnswer{.may_leave = true});
  Changed();
  // A member that joins has no workers any more, and the others cannot go on without them.
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
        // The job is nearly finished; restarting it for a newcomer would undo finished work.
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
  MUSTER_CHECK(starting_ > 0);
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
    MUSTER_CHECK(succeeded_.insert(attendee.group_rank).second);
    Log(attendee.node->node_id, "its workers have succeeded");
    if (!had_started) MemberStarted(now);
    if (succeeded_.size() == round_->members().size()) {
      End(SucceededVerdict(Facts(), round_->members()), now);
    }
    return;
  }

  // No worker can have failed before its round began, whatever its node reports.
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
  // Without running workers there is nothing to wait for: its Leave follows at once.
  if (!attendee.has_rank() || attendee.state == NodeState::kSucceeded) {
    Log(attendee.node->node_id, absl::StrCat("is leaving: ", why));
    if (!attendee.waits()) return;
    // It gets no place any more; a spare may take the one it had.
    round_->Leave(attendee.node->node_id, now);
    return FollowRound(now);
  }
  NextRound(RoundEnd::kNodeLeaving,
            absl::StrCat("node ", attendee.node->host, " is leaving: ", why), now);
}

void Job::AskToLeave(AttendeeId agent, RoundId round, const std::string& why, TimePoint now) {
  Attendee& attendee = roster_.at(agent);
  if (verdict_) return;  // the agent has been sent the verdict
  // A repeated request: the answer may have been lost with the connection.
  if (attendee.leaving) return Tell(agent, LeaveAnswer{.may_leave = true});
  // The node's last round may be over by now. A node that waits for a place is in no round.
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
    return "workers of other nodes have finished, and would have to start over";
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
  MUSTER_CHECK(!verdict_);
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
  MUSTER_CHECK(round_->state() == Round::State::kComplete && !started_ && !verdict_);
  Changed();
  started_ = true;
  ++rounds_run_;
  reminder_.End();
  // The round starts without them: if the others leave, nothing waits for the lost nodes any more.
  roster_.ForgetLost();
  const std::vector<Placement>& members = round_->members();
  starting_ = static_cast<int>(members.size());
  MakeAssignments();
  const std::vector<Roster::Entry*> attendees = roster_.AttendeesOf(members);
  outbox_->directives.reserve(outbox_->directives.size() + members.size());
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    // A member that does not attend, or ranks with a gap, would start a job that can never meet.
    MUSTER_CHECK(members[rank].group_rank == rank && attendees[rank] != nullptr);
    auto& [agent, attendee] = *attendees[rank];
    // Its workers of the last round have ended, and it asked for this place.
    MUSTER_CHECK(attendee.waits() && !attendee.leaving);
    attendee.Become(NodeState::kStarting, now);
    attendee.group_rank = rank;
    attendee.ran = round_->number();
    Tell(agent, assignments_[rank]);
  }
  RememberPlaces(attendees);
  // The sentence of a complete round does not depend on the time.
  LogMilestone(absl::StrCat("starts: ", round_->Explain(TimePoint{})),
               history_.Start(members, now));
}

JobFacts Job::Facts() const {
  return {run_id_, rounds_run_, budget_.spent()};
}

void Job::End(Verdict verdict, TimePoint now, std::optional<Duration> detected) {
  // What was told of its end once stays so.
  MUSTER_CHECK(!verdict_);
  Changed();
  verdict_ = std::move(verdict);
  reminder_.End();
  history_.Finish(detected, now);
  LogMilestone(verdict_->sentence, JobEnded{verdict_->kind, detected});
  PrepareVerdict();
  for (const auto& [agent, attendee] : roster_.attendees()) Tell(agent, VerdictFor(attendee));
}

bool Job::IsCurrent(AttendeeId agent, RoundId round) const {
  const bool runs = round.incarnation == incarnation_ && round.number == round_->number();
  return !verdict_ && runs && roster_.at(agent).has_rank();
}

template <typename Milestone>
void Job::LogMilestone(std::string text, Milestone milestone) {
  Log("", std::move(text));
  outbox_->transitions.back().milestone = std::move(milestone);
}

}  // namespace muster::rendezvous
