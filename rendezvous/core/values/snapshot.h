// The state of a job as tools and pages see it: a copy, taken at one point in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/types.h"

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

// A rank of the current round that has reported steps.
struct RankSnapshot {
  int rank = 0;
  RankProgress told;  // with `ago` as of now
  // nullopt: it is not a straggler.
  std::optional<Straggling> straggling;
};

// What is wrong with a rank of the current round.
struct RankAlertSnapshot {
  int rank = 0;
  RankAlert told;  // with `ago` as of now
};

struct NodeSnapshot {
  NodeInfo node;
  NodeState state = NodeState::kJoined;
  int group_rank = -1;  // in the current round; -1: none
  std::string rank_reason;
  // Time since its agent was last heard; nullopt: it cannot fall silent, or has not come back yet
  // since the daemon was restarted.
  std::optional<Duration> heard_ago{};
  // How long it has been in `state`; nullopt: since before the daemon was restarted.
  std::optional<Duration> state_ago{};
  // In rank order.
  std::vector<RankSnapshot> ranks{};
  // In order of rank, then kind.
  std::vector<RankAlertSnapshot> alerts{};
};

// A round, current or past.
struct RoundSnapshot {
  RoundNumber number = 0;
  // Time since it opened; for the first, since the job was created.
  Duration opened_ago{};
  // How long it gathered; nullopt: it has not started.
  std::optional<Duration> gathered;
  // How long it has run, or ran.
  Duration ran{};
  // Members and their workers, once it has started.
  int nodes = 0;
  int workers = 0;
  // The first worker that failed in it; nullopt: none did.
  std::optional<int> failed_rank;
  // Why it is over, and in words; nullopt: it is the current one.
  std::optional<RoundEnd> end;
  std::string reason;

  bool operator==(const RoundSnapshot&) const = default;
};

// The history of a job's rounds.
struct HistorySnapshot {
  // From the job's creation until now, or until its end.
  Duration age{};
  // The part of it in which rounds were productive (job/job_history.h).
  Duration productive{};
  // Time since the verdict; nullopt: there is none.
  std::optional<Duration> ended_ago;
  // The last rounds, the current one last.
  std::vector<RoundSnapshot> rounds;
  // When this was recorded, in ms since 1970 by the wall clock; 0: unknown. Set only by a journal.
  std::int64_t true_at_ms = 0;

  // Advances it by `time`.
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
  // The contents of its store.
  std::uint64_t store_keys = 0;
  std::uint64_t store_bytes = 0;
  // Worker output that log files did not take, since this daemon was started.
  std::uint64_t log_bytes_lost = 0;
  std::vector<RoundSnapshot> rounds;
  // How it ended, if it has; and its first failure, if a single job was requested.
  std::optional<VerdictKind> outcome;
  std::optional<WorkerFailure> failure;
  // Members by group rank, then the others in order of session. Empty for a job that has ended and
  // that all nodes have left.
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
  // The verdict's sentence.
  std::string sentence;
};

// One update of a watch of jobs.

struct WatchedJobs {
  // All current jobs, in order of run id; or the watched one, if it exists.
  std::vector<JobSnapshot> jobs;
  // Jobs that ended since the last update.
  std::vector<JobEnd> ended;
  // Nothing but the time has changed since then.
  bool unchanged = false;
};

}  // namespace muster::rendezvous
