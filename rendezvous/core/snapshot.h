// The state of a job as tools and pages see it: a copy, taken at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/milestone.h"
#include "rendezvous/core/progress.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

enum class JobState { kGathering, kRunning, kEnded };

enum class NodeState {
  kJoined,     // has a place in the gathering round, or asks for one
  kStarting,   // has its Assignment, workers not yet reported started
  kRunning,    // its workers run
  kSucceeded,  // its workers have all exited with 0
  kStopping,   // told to stop the workers of a round that is over
  kSpare,      // waits for a place
};

// A rank of the current round that has told of its steps.
struct RankSnapshot {
  int rank = 0;
  RankProgress told;  // with `ago` as it is now
  // nullopt: it is no straggler.
  std::optional<Straggling> straggling;
};

// What is wrong with a rank of the current round.
struct TroubleSnapshot {
  int rank = 0;
  RankTrouble told;  // with `ago` as it is now
};

struct NodeSnapshot {
  NodeInfo node;
  NodeState state = NodeState::kJoined;
  int group_rank = -1;  // in the current round; -1: none
  std::string rank_reason;
  // Since its agent was last heard; nullopt: it cannot fall silent, or has not come back yet since
  // the daemon was started again.
  std::optional<Duration> heard_ago{};
  // For how long it has been in `state`; nullopt: since before the daemon was started again.
  std::optional<Duration> state_ago{};
  // In order of rank.
  std::vector<RankSnapshot> ranks{};
  // In order of rank, and of kind.
  std::vector<TroubleSnapshot> troubles{};
};

// A round, this one or a former one.
struct RoundSnapshot {
  RoundNumber number = 0;
  // When it opened: for the first, when the job was made.
  Duration opened_ago{};
  // How long it gathered; nullopt: it has not started.
  std::optional<Duration> gathered;
  // How long it has run, or ran.
  Duration ran{};
  // Of its members, once it has started.
  int nodes = 0;
  int workers = 0;
  // The first worker that failed in it; nullopt: none did.
  std::optional<int> failed_rank;
  // Why it is over, also in words; nullopt: it is the current one.
  std::optional<RoundEnd> end;
  std::string reason;

  bool operator==(const RoundSnapshot&) const = default;
};

// What has become of a job's rounds.
struct HistorySnapshot {
  // Since the job was made, until its end.
  Duration age{};
  // The part of it in which rounds were productive (job/job_history.h).
  Duration productive{};
  // Since it has its verdict; nullopt: it has none.
  std::optional<Duration> ended_ago;
  // The last ones, the current one last.
  std::vector<RoundSnapshot> rounds;
  // When this was true, in ms since 1970 by the wall clock; 0: not known. Only a journal says so.
  std::int64_t true_at_ms = 0;

  // What it is after so much time.
  void Pass(Duration time) {
    if (ended_ago) {
      *ended_ago += time;
    } else {
      age += time;
      if (!rounds.empty() && rounds.back().gathered) productive += time;
    }
    for (RoundSnapshot& round : rounds) round.opened_ago += time;
  }

  bool operator==(const HistorySnapshot&) const = default;
};

struct JobSnapshot {
  std::string run_id;
  JobState state = JobState::kGathering;
  RoundNumber round = 0;
  std::string sentence;
  JobSettings settings;
  int restart_count = 0;
  // As in HistorySnapshot.
  Duration age{};
  Duration productive{};
  std::optional<Duration> ended_ago;
  // What its store holds.
  std::uint64_t store_keys = 0;
  std::uint64_t store_bytes = 0;
  // Of its workers' output, since this daemon was started: what log files did not take.
  std::uint64_t log_bytes_lost = 0;
  std::vector<RoundSnapshot> rounds;
  // How it ended, if it has; and what the first failure was, where one job was asked for.
  std::optional<VerdictKind> outcome;
  std::optional<WorkerFailure> failure;
  // Members by group rank, then the others in order of their attendance. None of a job that has
  // ended and that all have left.
  std::vector<NodeSnapshot> nodes;

  void SetHistory(HistorySnapshot history) {
    age = history.age;
    productive = history.productive;
    ended_ago = history.ended_ago;
    rounds = std::move(history.rounds);
  }
};

// How a job has ended.
struct JobEnd {
  std::string run_id;
  VerdictKind kind = VerdictKind::kSucceeded;
  // The verdict's.
  std::string sentence;
};

}  // namespace muster::rendezvous
