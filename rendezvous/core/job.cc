#include "rendezvous/core/job.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/phrases.h"

namespace muster::rendezvous {
namespace {

// Who waits hears why: soon after he came, and again now and then.
constexpr Duration kFirstReminder = std::chrono::seconds(1);
constexpr Duration kNextReminder = std::chrono::seconds(10);

}  // namespace

Job::Job(std::string run_id, const JobSettings& settings, TimePoint now, Outbox* outbox)
    : run_id_(std::move(run_id)), settings_(settings), outbox_(outbox) {
  round_.emplace(0, settings_, std::vector<Round::Returning>{}, now);
}

void Job::Join(AgentId agent, const NodeInfo& node, TimePoint now) {
  Attendee& attendee = attendees_[agent];
  // A member that joins has no workers any more, told or not; the others cannot go on without them.
  if (!verdict_ && attendee.group_rank >= 0) {
    attendee.stopped = true;
    NextRound(absl::StrCat("node ", attendee.node.host, " joined anew"), now);
    attendee.stopped = false;
  }
  node_ids_.insert(node.node_id);
  attendee.node = node;
  attendee.state = NodeState::kJoined;
  attendee.group_rank = -1;
  if (verdict_) {
    Tell(agent, *verdict_);
    return;
  }
  switch (round_->Join(node, now)) {
    case Round::JoinOutcome::kMember:
      Log(node.host, absl::StrCat("joined with ", Count(node.slots, "worker")));
      next_reminder_ = std::min(next_reminder_.value_or(TimePoint::max()), now + kFirstReminder);
      FollowRound(now);
      break;
    case Round::JoinOutcome::kAgain:
      break;
    case Round::JoinOutcome::kSpare:
      attendee.state = NodeState::kSpare;
      Log(node.host, "joined as a spare");
      Tell(agent, Waiting{round_->number(), round_->ExplainSpare(), true});
      break;
    case Round::JoinOutcome::kTooLate:
      attendee.state = NodeState::kSpare;
      if (AnySucceeded()) {
        // The job is on its last steps; starting it over for a newcomer would undo finished work.
        Log(node.host, "joined as a spare, as workers have already finished");
        Tell(agent, Waiting{round_->number(),
                            absl::StrCat("workers of round ", round_->number(),
                                         " have already finished; this node is a spare and is "
                                         "needed only if another is lost"),
                            true});
      } else {
        NextRound(absl::StrCat("node ", node.host, " joined"), now);
      }
      break;
  }
}

void Job::WorkersStarted(AgentId agent, RoundNumber round, TimePoint) {
  if (!IsCurrent(agent, round)) return;
  Attendee& attendee = attendees_.at(agent);
  if (attendee.state != NodeState::kStarting) return;
  attendee.state = NodeState::kRunning;
  Log(attendee.node.host, absl::StrCat("started ", Count(attendee.node.slots, "worker")));
}

void Job::WorkersExited(AgentId agent, RoundNumber round, const WorkersOutcome& outcome,
                        TimePoint now) {
  if (!IsCurrent(agent, round)) return;
  Attendee& attendee = attendees_.at(agent);
  if (attendee.state == NodeState::kSucceeded) return;
  if (outcome.succeeded) {
    attendee.state = NodeState::kSucceeded;
    succeeded_.insert(attendee.group_rank);
    Log(attendee.node.host, "its workers have succeeded");
    if (succeeded_.size() == round_->members().size()) {
      int workers = 0;
      for (const Placement& member : round_->members()) workers += member.node.slots;
      End({.kind = VerdictKind::kSucceeded,
           .sentence =
               absl::StrCat("job '", run_id_, "' succeeded: ", Count(workers, "worker"), " on ",
                            Count(succeeded_.size(), "node"), ", ", Count(rounds_run_, "round"),
                            ", ", Count(restarts_, "restart"))});
    }
    return;
  }

  const WorkerFailure failure = outcome.failure.value_or(WorkerFailure{});
  const std::string what = DescribeFailure(failure);
  Log(attendee.node.host, what);
  if (restarts_ < settings_.max_restarts) {
    ++restarts_;
    NextRound(absl::StrCat(what, " (restart ", restarts_, " of ", settings_.max_restarts, ")"),
              now);
    return;
  }
  End({.kind = VerdictKind::kWorkerFailed,
       .sentence =
           absl::StrCat("job '", run_id_, "' failed in round ", round, ": ", what,
                        settings_.max_restarts == 0
                            ? ""
                            : absl::StrCat(", and no restart is left of ", settings_.max_restarts)),
       .root_cause = failure});
}

void Job::Leaving(AgentId agent, const std::string& why, TimePoint now) {
  Attendee& attendee = attendees_.at(agent);
  if (attendee.leaving || verdict_) return;
  attendee.leaving = true;
  // Without workers that still run there is nothing to wait for: its Leave follows at once.
  if (attendee.group_rank < 0 || attendee.state == NodeState::kSucceeded) return;
  NextRound(absl::StrCat("node ", attendee.node.host, " is leaving: ", why), now);
}

void Job::Leave(AgentId agent, const std::string& why, TimePoint now) {
  const Attendee attendee = attendees_.at(agent);
  attendees_.erase(agent);
  node_ids_.erase(attendee.node.node_id);
  Log(attendee.node.host, why);
  if (verdict_) return;
  round_->Leave(attendee.node.node_id, now);
  const bool its_workers_are_missed =
      attendee.group_rank >= 0 && attendee.state != NodeState::kSucceeded;
  if (its_workers_are_missed) {
    NextRound(absl::StrCat("node ", attendee.node.host, " ", why), now);
  } else {
    FollowRound(now);
  }
}

std::string Job::ContestRank(const NodeInfo& newcomer, TimePoint now) {
  if (!settings_.exact_ranks || verdict_) return "";
  for (const auto& [agent, attendee] : attendees_) {
    if (attendee.node.rank_hint != newcomer.rank_hint) continue;
    const std::string rank = absl::StrCat("node rank ", newcomer.rank_hint.value_or(0));
    const std::string advice = "; give each node a --node-rank of its own";
    if (rounds_run_ > 0) {
      Tell(agent, Notice{absl::StrCat("node ", newcomer.host, " was refused: it asked for ", rank,
                                      ", which this node has", advice)});
    } else {
      Close(absl::StrCat("nodes ", attendee.node.host, " and ", newcomer.host, " both have ", rank,
                         advice),
            now);
    }
    return absl::StrCat(rank, " of job '", run_id_, "' is node ", attendee.node.host,
                        "'s already, and node ", newcomer.host, " asks for it, too", advice);
  }
  return "";
}

void Job::Close(const std::string& why, TimePoint) {
  if (verdict_) return;
  End({.kind = VerdictKind::kClosed,
       .sentence = absl::StrCat("job '", run_id_, "' was closed: ", why)});
}

void Job::Tick(TimePoint now) {
  if (verdict_) return;
  round_->Tick(now);
  FollowRound(now);
  if (!verdict_ && next_reminder_ && now >= *next_reminder_) RemindWaiting(now);
}

std::optional<TimePoint> Job::NextDeadline() const {
  if (verdict_) return std::nullopt;
  const std::optional<TimePoint> round = round_->NextDeadline();
  if (!round) return std::nullopt;
  return next_reminder_ ? std::min(*round, *next_reminder_) : *round;
}

void Job::NextRound(const std::string& reason, TimePoint now) {
  std::vector<Round::Returning> returning;
  for (auto& [agent, attendee] : attendees_) {
    if (attendee.group_rank < 0) continue;
    returning.push_back({attendee.node.node_id, attendee.node.host, attendee.group_rank});
    attendee.group_rank = -1;
    attendee.state = NodeState::kStopping;
    if (!attendee.leaving && !attendee.stopped) Tell(agent, Stop{round_->number(), reason});
  }
  Log("", absl::StrCat("is over: ", reason));
  round_.emplace(round_->number() + 1, settings_, std::move(returning), now);
  started_ = false;
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
  started_ = true;
  ++rounds_run_;
  next_reminder_.reset();
  const std::vector<Placement>& members = round_->members();
  std::unordered_map<std::string, AgentId> agents;
  for (const auto& [agent, attendee] : attendees_) agents[attendee.node.node_id] = agent;

  std::map<std::string, int> role_sizes;
  std::set<std::string> addresses;
  int world_size = 0;
  for (const Placement& member : members) {
    role_sizes[member.node.role] += member.node.slots;
    world_size += member.node.slots;
    addresses.insert(member.node.address);
    addresses.insert(member.node.addresses.begin(), member.node.addresses.end());
  }

  std::map<std::string, int> next_role_rank;
  int next_rank = 0;
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    const Placement& member = members[rank];
    // A member that does not attend, or ranks with a gap, would start a job that can never meet.
    if (member.group_rank != rank || !agents.contains(member.node.node_id)) std::abort();
    const AgentId agent = agents[member.node.node_id];
    Attendee& attendee = attendees_.at(agent);
    attendee.state = NodeState::kStarting;
    attendee.group_rank = rank;
    int& role_rank = next_role_rank[member.node.role];
    Tell(agent, Assignment{.run_id = run_id_,
                           .round = round_->number(),
                           .group_rank = rank,
                           .group_world_size = static_cast<int>(members.size()),
                           .base_rank = next_rank,
                           .world_size = world_size,
                           .role_base_rank = role_rank,
                           .role_world_size = role_sizes[member.node.role],
                           .master_addr = members[0].node.address,
                           .master_port = members[0].node.master_port,
                           .agent_store = members[0].node.serves_store,
                           .member_addresses = rank == 0 ? std::vector<std::string>(
                                                               addresses.begin(), addresses.end())
                                                         : std::vector<std::string>(),
                           .restart_count = restarts_,
                           .max_restarts = settings_.max_restarts,
                           .rank_reason = member.reason});
    next_rank += member.node.slots;
    role_rank += member.node.slots;
  }
  // What a complete round says does not depend on the time.
  Log("", absl::StrCat("starts: ", round_->Explain(TimePoint{})));
}

void Job::End(Verdict verdict) {
  verdict.rounds = rounds_run_;
  verdict.restarts = restarts_;
  verdict_ = std::move(verdict);
  next_reminder_.reset();
  Log("", verdict_->sentence);
  for (const auto& [agent, attendee] : attendees_) Tell(agent, *verdict_);
}

bool Job::IsCurrent(AgentId agent, RoundNumber round) {
  if (!verdict_ && round == round_->number() && attendees_.at(agent).group_rank >= 0) return true;
  const bool over = verdict_.has_value() || round < round_->number();
  Tell(agent, Fenced{round, absl::StrCat("fenced: round ", round,
                                         over ? " is over" : " does not run this node")});
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
    if (attendee.state == NodeState::kJoined) Tell(agent, Waiting{round_->number(), sentence});
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

void Job::Tell(AgentId agent, Directive directive) {
  outbox_->directives.push_back({agent, std::move(directive)});
}

void Job::Log(const std::string& node, std::string text) {
  outbox_->transitions.push_back({run_id_, round_->number(), node, std::move(text)});
}

}  // namespace muster::rendezvous
