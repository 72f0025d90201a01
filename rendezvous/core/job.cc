#include "rendezvous/core/job.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "rendezvous/core/assignments.h"
#include "rendezvous/core/phrases.h"

namespace muster::rendezvous {
namespace {

// Who waits hears why: soon after he came, and again now and then.
constexpr Duration kFirstReminder = std::chrono::seconds(1);
constexpr Duration kNextReminder = std::chrono::seconds(10);

}  // namespace

Job::Job(std::string run_id, Incarnation incarnation, const JobSettings& settings, TimePoint now,
         Outbox* outbox)
    : run_id_(std::move(run_id)), incarnation_(incarnation), settings_(settings), outbox_(outbox) {
  round_.emplace(0, settings_, std::vector<Round::Returning>{}, now);
}

Job::Job(const JobRecord& record, TimePoint now, Outbox* outbox)
    : run_id_(record.run_id),
      incarnation_(record.incarnation),
      settings_(record.settings),
      outbox_(outbox),
      started_(record.started),
      succeeded_(record.succeeded.begin(), record.succeeded.end()),
      lost_(record.lost.begin(), record.lost.end()),
      rounds_run_(record.rounds_run),
      restarts_(record.restarts),
      repeated_(record.repeated),
      over_reason_(record.over_reason),
      verdict_(record.verdict) {
  round_.emplace(record.round, settings_, now);
  for (const Duration& age : record.restart_ages) restart_times_.push_back(now - age);
  for (const AttendeeRecord& attendee : record.attendees) {
    attendees_[attendee.id] = {attendee.node, attendee.state, attendee.group_rank, attendee.leaving,
                               attendee.ran};
    node_ids_.insert(attendee.node.node_id);
  }
  if (record.workers_gone_in > Duration::zero()) workers_gone_by_ = now + record.workers_gone_in;
  if (!verdict_ && !started_) next_reminder_ = now + kFirstReminder;
}

JobRecord Job::Record(TimePoint now) const {
  JobRecord record{.run_id = run_id_,
                   .incarnation = incarnation_,
                   .settings = settings_,
                   .round = round_->Record(now),
                   .started = started_,
                   .succeeded = {succeeded_.begin(), succeeded_.end()},
                   .rounds_run = rounds_run_,
                   .restarts = restarts_,
                   .repeated = repeated_,
                   .over_reason = over_reason_,
                   .verdict = verdict_,
                   .lost = {lost_.begin(), lost_.end()}};
  if (workers_gone_by_ > now) record.workers_gone_in = workers_gone_by_ - now;
  for (const TimePoint& time : restart_times_) record.restart_ages.push_back(now - time);
  for (const auto& [id, attendee] : attendees_) {
    record.attendees.push_back({.id = id,
                                .node = attendee.node,
                                .state = attendee.state,
                                .group_rank = attendee.group_rank,
                                .leaving = attendee.leaving,
                                .ran = attendee.ran});
  }
  return record;
}

void Job::Join(AttendeeId agent, const NodeInfo& node, RoundNumber after, TimePoint now) {
  const bool attends = attendees_.contains(agent);
  Attendee& attendee = attendees_[agent];
  // Said before, and heard already: it is in the round, or among those who wait for a place.
  const bool waits = attendee.state == NodeState::kJoined || attendee.state == NodeState::kSpare;
  // Or said before it heard that it was to start workers, which may run by now.
  const bool old = after < attendee.ran;
  if (!verdict_ && attends && (waits || old)) return;
  Changed();
  // A member that joins has no workers any more, told or not; the others cannot go on without them.
  if (!verdict_ && attendee.group_rank >= 0) {
    attendee.stopped = true;
    NextRound(absl::StrCat("node ", attendee.node.host, " joined anew"), now);
    attendee.stopped = false;
  }
  node_ids_.insert(node.node_id);
  lost_.erase(node.node_id);
  attendee.node = node;
  attendee.state = NodeState::kJoined;
  attendee.group_rank = -1;
  if (verdict_) {
    Log(node.node_id, "has come too late");
    Tell(agent, *verdict_);
    return;
  }
  switch (round_->Join(node, now)) {
    case Round::JoinOutcome::kMember:
      Log(node.node_id, absl::StrCat("joined with ", base::Count(node.slots, "worker")));
      next_reminder_ = std::min(next_reminder_.value_or(TimePoint::max()), now + kFirstReminder);
      FollowRound(now);
      break;
    case Round::JoinOutcome::kAgain:  // another agent's node id, or an agent that was forgotten
      break;
    case Round::JoinOutcome::kSpare:
      attendee.state = NodeState::kSpare;
      Log(node.node_id, "joined as a spare");
      HaveWait(agent, round_->ExplainSpare(), /*spare=*/true);
      break;
    case Round::JoinOutcome::kTooLate:
      attendee.state = NodeState::kSpare;
      if (settings_.scale_up == ScaleUp::kNextRestart) {
        Log(node.node_id, "joined for the next restart");
        HaveWait(agent,
                 absl::StrCat("round ", round_->number(),
                              " runs and takes no newcomers (--scale-up=next-restart); "
                              "this node gets its place at the next restart"),
                 /*spare=*/true);
      } else if (AnySucceeded()) {
        // The job is on its last steps; starting it over for a newcomer would undo finished work.
        Log(node.node_id, "joined as a spare, as workers have already finished");
        HaveWait(agent,
                 absl::StrCat("workers of round ", round_->number(),
                              " have already finished; this node is a spare and is needed only if "
                              "another is lost"),
                 /*spare=*/true);
      } else {
        NextRound(absl::StrCat("node ", node.host, " joined"), now);
      }
      break;
  }
}

void Job::WorkersStarted(AttendeeId agent, RoundId round, TimePoint) {
  if (!IsCurrent(agent, round)) return;
  Attendee& attendee = attendees_.at(agent);
  if (attendee.state != NodeState::kStarting) return;
  Changed();
  attendee.state = NodeState::kRunning;
  Log(attendee.node.node_id, absl::StrCat("started ", base::Count(attendee.node.slots, "worker")));
}

void Job::WorkersExited(AttendeeId agent, RoundId round, const WorkersOutcome& outcome,
                        TimePoint now) {
  if (!IsCurrent(agent, round)) return;
  Attendee& attendee = attendees_.at(agent);
  if (attendee.state == NodeState::kSucceeded) return;
  Changed();
  if (outcome.succeeded) {
    attendee.state = NodeState::kSucceeded;
    succeeded_.insert(attendee.group_rank);
    Log(attendee.node.node_id, "its workers have succeeded");
    if (succeeded_.size() == round_->members().size()) {
      int workers = 0;
      for (const Placement& member : round_->members()) workers += member.node.slots;
      End({.kind = VerdictKind::kSucceeded,
           .sentence = absl::StrCat(
               "job '", run_id_, "' succeeded: ", base::Count(workers, "worker"), " on ",
               base::Count(succeeded_.size(), "node"), ", ", base::Count(rounds_run_, "round"),
               ", ", base::Count(restarts_, "restart"))});
    }
    return;
  }

  const WorkerFailure failure = outcome.failure.value_or(WorkerFailure{});
  const std::string what = DescribeFailure(failure);
  Log(attendee.node.node_id, what);
  if (const Attendee* const missing = FindOutOfTouch(); missing != nullptr && !failure.final) {
    return NextRound(absl::StrCat("node ", missing->node.host, " is out of touch, and ", what),
                     now);
  }
  const std::optional<std::string> no_restart = NoRestart(failure, now);
  if (!no_restart) return Restart(what, now);
  End({.kind = VerdictKind::kWorkerFailed,
       .sentence = absl::StrCat("job '", run_id_, "' failed in round ", round.number, ": ", what,
                                *no_restart),
       .root_cause = failure});
}

std::optional<std::string> Job::NoRestart(const WorkerFailure& failure, TimePoint now) {
  const RestartPolicy& policy = settings_.restart;
  const bool repeats =
      failure.before_first_beat && failure.rank == repeated_.rank && failure.what == repeated_.what;
  repeated_ = {failure.rank, failure.what,
               failure.before_first_beat ? (repeats ? repeated_.times + 1 : 1) : 0};
  if (settings_.max_restarts == 0) return "";
  if (failure.final) return ", which is not to be followed by a restart";
  if (policy.no_progress_limit > 0 && repeated_.times >= policy.no_progress_limit) {
    return absl::StrCat(", ", repeated_.times,
                        " times in a row and each time before its first beat; another restart "
                        "would not help");
  }
  if (policy.window == Duration::zero()) {
    if (restarts_ < settings_.max_restarts) return std::nullopt;
    return absl::StrCat(", and no restart is left of ", settings_.max_restarts);
  }
  const auto counts = [&](TimePoint time) { return now - time < policy.window; };
  if (std::count_if(restart_times_.begin(), restart_times_.end(), counts) <
      settings_.max_restarts) {
    return std::nullopt;
  }
  return absl::StrCat(", and no restart is left of ", settings_.max_restarts, " in ",
                      base::Seconds(policy.window));
}

void Job::Restart(const std::string& what, TimePoint now) {
  const RestartPolicy& policy = settings_.restart;
  constexpr int kCalmFactor = 10;
  const Duration remembered = std::max(policy.window, kCalmFactor * policy.longest_delay);
  while (!restart_times_.empty() && now - restart_times_.front() >= remembered) {
    restart_times_.pop_front();
  }
  // How many restarts in a row came before this one, without a calm time between them.
  Duration delay = policy.delay;
  TimePoint later = now;
  for (auto time = restart_times_.rbegin(); time != restart_times_.rend(); ++time) {
    if (delay >= policy.longest_delay || later - *time >= kCalmFactor * policy.longest_delay) break;
    delay = std::min(2 * delay, policy.longest_delay);
    later = *time;
  }
  ++restarts_;
  if (remembered > Duration::zero()) restart_times_.push_back(now);
  std::string reason = absl::StrCat(what, " (restart ", restarts_, " of ", settings_.max_restarts);
  if (policy.window > Duration::zero()) {
    reason = absl::StrCat(what, " (restart ", restarts_, ", at most ", settings_.max_restarts,
                          " in ", base::Seconds(policy.window));
  }
  if (delay > Duration::zero()) absl::StrAppend(&reason, ", after ", base::Seconds(delay));
  NextRound(reason + ")", now, delay > Duration::zero() ? now + delay : TimePoint::min());
}

void Job::Leaving(AttendeeId agent, const std::string& why, TimePoint now) {
  Attendee& attendee = attendees_.at(agent);
  if (attendee.leaving || verdict_) return;
  Changed();
  attendee.leaving = true;
  // Without workers that still run there is nothing to wait for: its Leave follows at once.
  if (attendee.group_rank < 0 || attendee.state == NodeState::kSucceeded) {
    Log(attendee.node.node_id, absl::StrCat("is leaving: ", why));
    return;
  }
  NextRound(absl::StrCat("node ", attendee.node.host, " is leaving: ", why), now);
}

void Job::Leave(AttendeeId agent, const std::string& why, TimePoint now, TimePoint gone_by) {
  const Attendee attendee = attendees_.at(agent);
  Changed();
  attendees_.erase(agent);
  node_ids_.erase(attendee.node.node_id);
  Log(attendee.node.node_id, why);
  workers_gone_by_ = std::max(workers_gone_by_, gone_by);
  if (gone_by != TimePoint::min()) lost_.insert(attendee.node.node_id);
  if (verdict_) return;
  if (attendee.state == NodeState::kStopping) round_->HoldUntil(gone_by, now);
  round_->Leave(attendee.node.node_id, now);
  const bool its_workers_are_missed =
      attendee.group_rank >= 0 && attendee.state != NodeState::kSucceeded;
  if (its_workers_are_missed) {
    NextRound(absl::StrCat("node ", attendee.node.host, " ", why), now, gone_by);
  } else {
    FollowRound(now);
  }
}

std::optional<AttendeeId> Job::HolderOfRank(const NodeInfo& newcomer) const {
  if (!settings_.exact_ranks || verdict_) return std::nullopt;
  for (const auto& [agent, attendee] : attendees_) {
    if (attendee.node.rank_hint == newcomer.rank_hint) return agent;
  }
  return std::nullopt;
}

std::string Job::RefuseRank(const NodeInfo& newcomer, AttendeeId holder, TimePoint now) {
  const std::string host = attendees_.at(holder).node.host;
  const std::string rank = absl::StrCat("node rank ", newcomer.rank_hint.value_or(0));
  const std::string advice = "; give each node a --node-rank of its own";
  if (rounds_run_ > 0) {
    Tell(holder, Notice{absl::StrCat("node ", newcomer.host, " was refused: it asked for ", rank,
                                     ", which this node has", advice)});
  } else {
    Close(absl::StrCat("nodes ", host, " and ", newcomer.host, " both have ", rank, advice), now);
  }
  return absl::StrCat(rank, " of job '", run_id_, "' is node ", host, "'s already, and node ",
                      newcomer.host, " asks for it, too", advice);
}

void Job::Close(const std::string& why, TimePoint) {
  if (verdict_) return;
  End({.kind = VerdictKind::kClosed,
       .sentence = absl::StrCat("job '", run_id_, "' was closed: ", why)});
}

void Job::Tick(TimePoint now) {
  if (verdict_) return;
  if (const auto due = round_->NextDeadline(); due && *due <= now) Changed();
  round_->Tick(now);
  FollowRound(now);
  if (!verdict_ && next_reminder_ && now >= *next_reminder_) RemindWaiting(now);
}

std::optional<TimePoint> Job::NextDeadline() const {
  if (verdict_) return std::nullopt;
  std::optional<TimePoint> due = round_->NextDeadline();
  if (next_reminder_ && (!due || *next_reminder_ < *due)) due = next_reminder_;
  return due;
}

void Job::NextRound(const std::string& reason, TimePoint now, TimePoint earliest) {
  Changed();
  std::vector<Round::Returning> returning;
  for (auto& [agent, attendee] : attendees_) {
    if (attendee.group_rank < 0) continue;
    returning.push_back({attendee.node.node_id, attendee.node.host, attendee.group_rank});
    attendee.group_rank = -1;
    attendee.state = NodeState::kStopping;
    if (!attendee.leaving && !attendee.stopped)
      Tell(agent, Stop{round_->number(), reason, incarnation_});
  }
  Log("", absl::StrCat("is over: ", reason));
  over_reason_ = reason;
  round_.emplace(round_->number() + 1, settings_, returning, now, earliest);
  started_ = false;
  assignments_.clear();
  succeeded_.clear();
  next_reminder_ = now + kFirstReminder;
  for (auto& [agent, attendee] : attendees_) {
    if (attendee.state != NodeState::kSpare || attendee.leaving) continue;
    if (round_->Join(attendee.node, now) == Round::JoinOutcome::kMember) {
      attendee.state = NodeState::kJoined;
    }
  }
  FollowRound(now);
}

void Job::FollowRound(TimePoint now) {
  if (round_->state() == Round::State::kTimedOut) {
    End({.kind = VerdictKind::kJoinTimeout,
         .sentence = absl::StrCat("job '", run_id_, "': ", round_->Explain(now))});
  } else if (round_->state() == Round::State::kComplete && !started_) {
    StartMembers();
  }
}

void Job::StartMembers() {
  Changed();
  started_ = true;
  ++rounds_run_;
  next_reminder_.reset();
  // It goes on without them: when the others leave, nobody waits for these any more.
  lost_.clear();
  const std::vector<Placement>& members = round_->members();
  std::unordered_map<std::string, AttendeeId> agents;
  for (const auto& [agent, attendee] : attendees_) agents[attendee.node.node_id] = agent;

  const std::vector<Assignment>& assignments = Assignments();
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    // A member that does not attend, or ranks with a gap, would start a job that can never meet.
    if (members[rank].group_rank != rank || !agents.contains(members[rank].node.node_id)) {
      std::abort();
    }
    const AttendeeId agent = agents[members[rank].node.node_id];
    Attendee& attendee = attendees_.at(agent);
    attendee.state = NodeState::kStarting;
    attendee.group_rank = rank;
    attendee.ran = round_->number();
    Tell(agent, assignments[rank]);
  }
  // What a complete round says does not depend on the time.
  Log("", absl::StrCat("starts: ", round_->Explain(TimePoint{})));
}

const std::vector<Assignment>& Job::Assignments() {
  if (assignments_.empty()) {
    assignments_ = MakeAssignments(
        {run_id_, incarnation_, round_->number(), restarts_, settings_.max_restarts},
        round_->members());
  }
  return assignments_;
}

void Job::SetOutOfTouch(AttendeeId agent, bool out_of_touch) {
  attendees_.at(agent).out_of_touch = out_of_touch;
}

const Job::Attendee* Job::FindOutOfTouch() const {
  for (const auto& [agent, attendee] : attendees_) {
    if (attendee.out_of_touch && attendee.group_rank >= 0) return &attendee;
  }
  return nullptr;
}

void Job::TellAgain(AttendeeId agent) {
  const Attendee& attendee = attendees_.at(agent);
  if (verdict_) return Tell(agent, *verdict_);
  switch (attendee.state) {
    case NodeState::kStarting:
    case NodeState::kRunning:
    case NodeState::kSucceeded:
      return Tell(agent, Assignments()[attendee.group_rank]);
    case NodeState::kStopping:
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
  for (const auto& [agent, attendee] : attendees_) Tell(agent, Notice{sentence});
}

void Job::End(Verdict verdict) {
  Changed();
  verdict.rounds = rounds_run_;
  verdict.restarts = restarts_;
  verdict_ = std::move(verdict);
  next_reminder_.reset();
  Log("", verdict_->sentence);
  for (const auto& [agent, attendee] : attendees_) Tell(agent, *verdict_);
}

bool Job::IsCurrent(AttendeeId agent, RoundId round) {
  const bool ours = round.incarnation == incarnation_;
  const bool runs = ours && round.number == round_->number();
  if (!verdict_ && runs && attendees_.at(agent).group_rank >= 0) return true;
  const bool over = verdict_.has_value() || (ours && round.number < round_->number());
  Tell(agent, Fenced{round.number,
                     absl::StrCat("fenced: round ", round.number,
                                  over   ? " is over"
                                  : ours ? " does not run this node"
                                         : " is of another life of this job"),
                     round.incarnation});
  return false;
}

void Job::RemindWaiting(TimePoint now) {
  if (round_->state() != Round::State::kGathering) {
    next_reminder_.reset();
    return;
  }
  next_reminder_ = now + kNextReminder;
  const std::string sentence = round_->Explain(now);
  for (const auto& [agent, attendee] : attendees_) {
    if (attendee.state == NodeState::kJoined) HaveWait(agent, sentence, /*spare=*/false);
  }
  Log("", sentence);
}

bool Job::HasNode(std::string_view node_id) const {
  return node_ids_.contains(node_id);
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
  snapshot.restart_count = restarts_;
  for (const auto& [agent, attendee] : attendees_) {
    NodeSnapshot node{attendee.node, attendee.state, attendee.group_rank, ""};
    if (attendee.group_rank >= 0) node.rank_reason = round_->members()[attendee.group_rank].reason;
    snapshot.nodes.push_back(std::move(node));
  }
  std::stable_sort(snapshot.nodes.begin(), snapshot.nodes.end(), [](const auto& a, const auto& b) {
    const auto place = [](const NodeSnapshot& n) { return static_cast<unsigned>(n.group_rank); };
    return place(a) < place(b);
  });
  return snapshot;
}

void Job::Tell(AttendeeId agent, Directive directive) {
  outbox_->directives.push_back({agent, std::move(directive)});
}

// A terminal may show several jobs, and a mistyped --rdzv-id is a job of its own that waits for
// ever.
void Job::HaveWait(AttendeeId agent, const std::string& why, bool spare) {
  Tell(agent, Waiting{round_->number(), absl::StrCat("job '", run_id_, "': ", why), spare});
}

void Job::Log(const std::string& node_id, std::string text) {
  outbox_->transitions.push_back({run_id_, round_->number(), node_id, std::move(text)});
}

}  // namespace muster::rendezvous
