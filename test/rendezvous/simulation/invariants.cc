#include "test/rendezvous/simulation/invariants.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// From here on the Coordinator takes a late tick for a halt.
constexpr Duration kHalt = std::chrono::milliseconds(250);

bool SameState(const JobSnapshot& a, const JobSnapshot& b) {
  return a.run_id == b.run_id && a.state == b.state && a.round == b.round &&
         a.sentence == b.sentence && a.settings == b.settings &&
         a.restart_count == b.restart_count &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [](const NodeSnapshot& x, const NodeSnapshot& y) {
                      return x.node == y.node && x.state == y.state &&
                             x.group_rank == y.group_rank && x.rank_reason == y.rank_reason;
                    });
}

bool IsReport(CallKind kind) {
  return kind == CallKind::kStarted || kind == CallKind::kSucceeded || kind == CallKind::kFailed;
}

}  // namespace

const char* NameOf(Check check) {
  constexpr std::array<const char*, 21> kNames = {
      "rounds increase", "ranks partition",   "old rounds fenced",
      "wait bounded",    "round size",        "stop before start",
      "all are stopped", "restart budget",    "sticky ranks",
      "one verdict",     "verdict is true",   "end is end",
      "places are kept", "spares are needed", "leases",
      "deadlines",       "addressee",         "only with cause",
      "enough stay",     "forgotten",         "snapshot is true"};
  static_assert(static_cast<size_t>(Check::kSnapshotIsTrue) + 1 == kNames.size());
  return kNames[static_cast<size_t>(check)];
}

const std::string* Invariants::JobOfOldRound(const Call& event) const {
  if (!IsReport(event.kind)) return nullptr;
  const auto found = attendances_.find(event.agent);
  if (found == attendances_.end()) return nullptr;
  const Attendance& sender = found->second;
  const bool current =
      sender.phase == Phase::kStarted && sender.round == event.round && sender.job->running;
  return current ? nullptr : &sender.job->run_id;
}

void Invariants::ObserveOld(const Call& event, const JobSnapshot& before,
                            const JobSnapshot& after) {
  if (SameState(before, after)) return;
  Violate(Check::kOldRoundsFenced, "a message of round ", event.round, " changed round ",
          before.round, " of job ", before.run_id, ": \"", before.sentence, "\" became \"",
          after.sentence, "\"");
}

void Invariants::Observe(const Call& event, const Outbox& outbox, TimePoint now) {
  may_leave_.reset();
  const Expected expected = Apply(event, now);
  CheckExpected(event, expected, outbox.directives);
  CheckAnswer(event, outbox.directives);
  HearAll(event, outbox, now);
  CheckForgotten(outbox);
  due_.reset();
  CheckNodes(event, now);
  CheckJobs(event, now);
}

Invariants::Expected Invariants::Apply(const Call& event, TimePoint now) {
  switch (event.kind) {
    case CallKind::kTick:
      if (event.late > kHalt) {
        coverage_.Count(Happening::kHalt);
        for (auto& [agent, node] : attendances_) node.heard = now;
      }
      return Expected::kAnything;
    case CallKind::kClose:
      return Expected::kAnything;
    case CallKind::kDrain:
      draining_ = true;
      return Expected::kNothing;
    default:
      break;
  }
  const auto found = attendances_.find(event.agent);
  if (found == attendances_.end()) {
    if (event.kind == CallKind::kJoin) return Expected::kAnswer;
    coverage_.Count(Happening::kUnheard);
    return Expected::kNothing;
  }
  Attendance& sender = found->second;
  ModelJob& job = *sender.job;
  sender.heard = now;
  switch (event.kind) {
    case CallKind::kJoin:
      if (sender.leaving && sender.phase == Phase::kIdle && !job.verdict) {
        // It has not heard yet that it may leave.
        may_leave_ = true;
        return Expected::kAnything;
      }
      sender.request = *event.request;
      sender.phase = Phase::kAsking;
      sender.asked = now;
      sender.spare = sender.told_verdict = false;
      if (job.running && static_cast<int>(job.ranks.size()) < job.settings.max_nodes &&
          job.succeeded == 0) {
        RoundIsOver(job, now);
      }
      return Expected::kAnything;
    case CallKind::kLeaving:
      if (job.verdict || sender.leaving) return Expected::kNothing;
      sender.leaving = true;
      if (sender.phase != Phase::kStarted || sender.succeeded) return Expected::kNothing;
      coverage_.Count(Happening::kDrained);
      RoundIsOver(job, now);
      return Expected::kAnything;
    case CallKind::kAskToLeave:
      return ApplyQuestion(event, sender, now);
    case CallKind::kLost:
      coverage_.Count(Happening::kLost);
      [[fallthrough]];
    case CallKind::kLeave:
      if (sender.phase == Phase::kAsking) coverage_.Count(Happening::kLeftWhileAsking);
      Forget(event.agent, now);
      return Expected::kAnything;
    case CallKind::kKeepAlive:
      return Expected::kNothing;
    default:
      return ApplyReport(event, sender, now);
  }
}

Invariants::Expected Invariants::ApplyReport(const Call& event, Attendance& sender, TimePoint now) {
  if (JobOfOldRound(event) != nullptr) return Expected::kFenced;
  ModelJob& job = *sender.job;
  if (event.kind == CallKind::kSucceeded && !sender.succeeded) {
    sender.succeeded = true;
    ++job.succeeded;
    job.must_end = job.succeeded == static_cast<int>(job.ranks.size());
  } else if (event.kind == CallKind::kFailed) {
    job.must_end = job.restarts == job.settings.max_restarts;
    if (!job.must_end) {
      ++job.restarts;
      RoundIsOver(job, now);
      return Expected::kAnything;
    }
  }
  return job.must_end ? Expected::kAnything : Expected::kNothing;
}

Invariants::Expected Invariants::ApplyQuestion(const Call& event, Attendance& sender,
                                               TimePoint now) {
  ModelJob& job = *sender.job;
  if (job.verdict) return Expected::kNothing;
  const bool waits = sender.phase == Phase::kAsking;
  if (!sender.leaving && !waits && sender.round != event.round) return Expected::kFenced;
  const auto stay = std::count_if(attendances_.begin(), attendances_.end(), [&](const auto& entry) {
    return entry.second.job == &job && !entry.second.leaving && &entry.second != &sender;
  });
  const bool undoes_work = job.running && job.succeeded > 0 && !waits;
  may_leave_ = sender.leaving || (stay >= job.settings.min_nodes && !undoes_work);
  coverage_.Count(*may_leave_ ? Happening::kMayLeave : Happening::kHasToStay);
  if (!*may_leave_ || std::exchange(sender.leaving, true)) return Expected::kAnything;
  if (sender.phase == Phase::kStarted) RoundIsOver(job, now);
  return Expected::kAnything;
}

void Invariants::RoundIsOver(ModelJob& job, TimePoint now) {
  job.running = false;
  job.gathers_since = job.held_until = now;
  // Who has said that it leaves stops by itself.
  for (auto& [agent, node] : attendances_) {
    if (node.job == &job && node.leaving && node.phase == Phase::kStarted) {
      node.phase = Phase::kIdle;
    }
  }
}

void Invariants::Forget(AgentId agent, TimePoint now) {
  const auto found = attendances_.find(agent);
  const Attendance node = std::move(found->second);
  attendances_.erase(found);
  --node.job->attending;
  if (node.phase == Phase::kStarted && !node.succeeded && node.job->running) {
    RoundIsOver(*node.job, now);
  }
}

void Invariants::CheckExpected(const Call& event, Expected expected,
                               const std::vector<Outgoing>& directives) {
  if (expected == Expected::kFenced) {
    CheckFenced(event, directives);
    return;
  }
  bool answered = false;
  for (const Outgoing& outgoing : directives) {
    const Directive& directive = outgoing.directive();
    if (std::holds_alternative<Fenced>(directive)) {
      Violate(Check::kOldRoundsFenced, "\"", CallText(event), "\" is current and was fenced");
    }
    answered |= outgoing.to == event.agent && (std::holds_alternative<Welcome>(directive) ||
                                               std::holds_alternative<Refused>(directive));
  }
  if (expected == Expected::kAnswer && !answered) {
    Violate(Check::kWaitBounded, "\"", CallText(event), "\" was not answered");
  }
  if (expected == Expected::kNothing && !directives.empty()) {
    Violate(Check::kOnlyWithCause, "\"", CallText(event), "\" brought about ", directives.size(),
            " directives");
  }
}

void Invariants::CheckFenced(const Call& event, const std::vector<Outgoing>& directives) {
  coverage_.Count(Happening::kFenced);
  if (directives.size() == 1 && directives[0].to == event.agent) {
    const auto* fenced = std::get_if<Fenced>(&directives[0].directive());
    if (fenced != nullptr && fenced->round == event.round) return;
  }
  Violate(Check::kOldRoundsFenced, "\"", CallText(event),
          "\" names a round that is over and was not answered so");
}

void Invariants::CheckAnswer(const Call& event, const std::vector<Outgoing>& directives) {
  int answers = 0;
  for (const Outgoing& outgoing : directives) {
    const auto* answer = std::get_if<LeaveAnswer>(&outgoing.directive());
    if (answer == nullptr) continue;
    ++answers;
    if (outgoing.to == event.agent && answer->may_leave == may_leave_) continue;
    Violate(Check::kEnoughStay, "after \"", CallText(event), "\" a", outgoing.to,
            answer->may_leave ? " may leave" : " has to stay");
  }
  if (answers == (may_leave_ ? 1 : 0)) return;
  Violate(Check::kEnoughStay, "\"", CallText(event), "\" is answered ", answers, " times");
}

void Invariants::CheckForgotten(const Outbox& outbox) {
  for (const std::string& run_id : outbox.forgotten_jobs) {
    if (given_way_.erase(run_id) > 0) continue;
    const auto job = jobs_.find(run_id);
    if (job == jobs_.end() || job->second.attending > 0) {
      Violate(Check::kForgotten, "job ", run_id, " is forgotten while it is attended");
      continue;
    }
    coverage_.Count(Happening::kJobForgotten);
    TimePoint& busy_until = busy_names_[run_id];
    busy_until = std::max(busy_until, job->second.gone_by);
    jobs_.erase(job);
  }
}

void Invariants::CheckNodes(const Call& event, TimePoint now) {
  for (auto& [run_id, job] : jobs_) job.asking = job.expected = 0;
  for (const auto& [agent, node] : attendances_) {
    // One that is about to leave is not taken into the next round.
    if (node.phase == Phase::kAsking && !node.leaving) ++node.job->asking;
    if (node.phase == Phase::kIdle && node.round == node.job->round) ++node.job->expected;
    CheckNode(agent, node, now);
    if (node.lease == Duration::zero()) continue;
    const Duration silence = now - node.heard;
    if (silence > node.lease + slack_ || (event.kind == CallKind::kTick && silence >= node.lease)) {
      Violate(Check::kLeases, "a", agent, " is silent for ", silence / std::chrono::milliseconds(1),
              " ms and still attends");
    }
    due_ = std::min(due_.value_or(TimePoint::max()), node.heard + node.lease);
  }
}

void Invariants::CheckNode(AgentId agent, const Attendance& node, TimePoint now) {
  const ModelJob& job = *node.job;
  if (job.verdict) {
    if (!node.told_verdict) {
      Violate(Check::kOneVerdict, "a", agent, " is not told the verdict of job ", job.run_id);
    }
  } else if (node.phase == Phase::kStarted) {
    if (!job.running || node.round != job.round) {
      Violate(Check::kAllAreStopped, "a", agent, " is not told that round ", node.round,
              " is over");
    }
  } else if (node.phase == Phase::kAsking && !node.leaving) {
    if (job.running && !node.spare) {
      Violate(Check::kWaitBounded, "a", agent, " asks, and job ", job.run_id,
              " runs without telling it");
    }
    if (job.running && job.succeeded == 0 &&
        static_cast<int>(job.ranks.size()) < job.settings.max_nodes) {
      Violate(Check::kSparesAreNeeded, "a", agent, " waits, and round ", job.round, " has ",
              job.ranks.size(), " of ", job.settings.max_nodes, " nodes");
    }
    const TimePoint begin =
        std::max({node.asked, job.held_until, job.together_since.value_or(now)});
    if (!node.spare && now > begin + job.settings.join_timeout + slack_) {
      Violate(Check::kWaitBounded, "a", agent, " waits for longer than the join timeout");
    }
  }
}

void Invariants::CheckJobs(const Call& event, TimePoint now) {
  for (auto& [run_id, job] : jobs_) {
    if (job.attending == 0 && (job.verdict || job.running || job.lost.empty())) {
      Violate(Check::kForgotten, "job ", run_id, " has no agents and is not forgotten");
    }
    if (job.must_end && !job.verdict) {
      Violate(Check::kVerdictIsTrue, "\"", CallText(event), "\" ended job ", run_id,
              ", and there is no verdict");
    }
    const bool gathers = !job.running && !job.verdict;
    const bool complete = gathers && job.asking >= job.settings.min_nodes && job.expected == 0;
    if (!complete) {
      job.complete_since.reset();
    } else if (!job.complete_since) {
      job.complete_since = now;
    }
    if (!gathers || job.expected > 0) {
      // As long as a node may still have workers there is nothing to give up.
      job.together_since.reset();
      continue;
    }
    if (!job.together_since) job.together_since = now;
    TimePoint gives_up = std::max(job.held_until, *job.together_since) + job.settings.join_timeout;
    if (now > gives_up + slack_) {
      Violate(Check::kWaitBounded, "job ", run_id, " gathers for longer than its join timeout");
    }
    if (complete) {
      const TimePoint since = std::max(*job.complete_since, job.held_until);
      gives_up = std::min(gives_up, since + job.settings.last_call);
    }
    due_ = std::min(due_.value_or(TimePoint::max()), gives_up);
  }
}

void Invariants::ObserveDeadline(std::optional<TimePoint> deadline) {
  if (!due_ || (deadline && *deadline <= *due_)) return;
  Violate(Check::kDeadlines, "something is due at ",
          due_->time_since_epoch() / std::chrono::milliseconds(1), " ms, and the next deadline is ",
          deadline ? absl::StrCat(
                         "at ", deadline->time_since_epoch() / std::chrono::milliseconds(1), " ms")
                   : "none");
}

void Invariants::ObserveSnapshot(const JobSnapshot& snapshot) {
  const auto found = jobs_.find(snapshot.run_id);
  if (found == jobs_.end()) {
    // It has ended, and all have left.
    if (snapshot.state == JobState::kEnded && snapshot.outcome && snapshot.nodes.empty()) return;
    Violate(Check::kSnapshotIsTrue, "job ", snapshot.run_id, " is described and not there");
    return;
  }
  const ModelJob& job = found->second;
  const JobState state = job.verdict   ? JobState::kEnded
                         : job.running ? JobState::kRunning
                                       : JobState::kGathering;
  const auto started =
      std::count_if(attendances_.begin(), attendances_.end(), [&job](const auto& entry) {
        return entry.second.job == &job && entry.second.phase == Phase::kStarted;
      });
  const auto ranked = std::count_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                                    [](const NodeSnapshot& n) { return n.group_rank >= 0; });
  const bool agrees =
      snapshot.state == state && snapshot.restart_count == job.restarts &&
      (state != JobState::kRunning || snapshot.round == job.round) &&
      (state != JobState::kGathering || snapshot.round > job.round) &&
      static_cast<int>(snapshot.nodes.size()) == job.attending &&
      (state == JobState::kEnded || ranked == started) &&
      std::all_of(snapshot.nodes.begin(), snapshot.nodes.end(), [&job](const NodeSnapshot& node) {
        if (node.group_rank < 0) return true;
        const auto rank = job.ranks.find(node.node.node_id);
        return rank != job.ranks.end() && rank->second == node.group_rank;
      });
  if (!agrees) {
    Violate(Check::kSnapshotIsTrue, "job ", snapshot.run_id, " is not as described: \"",
            snapshot.sentence, "\"");
  }
}

}  // namespace muster::rendezvous
