// What this node knows of the workers of a round: how far they come, and what there is to say when
// something goes wrong with them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/machine/gpu_health.h"
#include "launcher/run/failure_report.h"
#include "launcher/run/rank_layout.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/types.h"
#include "worker/exit_status.h"
#include "worker/flight_log.h"
#include "worker/flight_report.h"
#include "worker/group/group_life.h"
#include "worker/hang/hang_watch.h"

namespace muster::launcher {

struct AgentParts;

// The operations they are in, how they failed, and what the driver has reported meanwhile. Lives on
// the loop's thread.
class RoundEvidence {
 public:
  // `parts` must outlive it.
  explicit RoundEvidence(const AgentParts& parts) : parts_(parts) {}

  // Workers with ranks from `first_rank` on are about to start: of the round before nothing is
  // known any more. Adds to `logs` where they write their operations.
  void Begin(int first_rank, AttemptLogs& logs);

  // In which operations the workers of the round that began last are, or were when they died.
  std::vector<worker::RankFlight> Operations() const;
  // A worker has moved since TakeOperations.
  bool has_moved() const { return worker::LastMove(Operations()) > told_operations_at_; }
  // A worker has moved since then, and one has been in an operation for long.
  bool has_stalled() const;
  // The sentence about them; empty: they log none, or none is in one. It is told now.
  std::string TakeOperations();

  // Whether a worker's exit is one in which all others are likely to end as well, as each start
  // would end so.
  bool MayBeEndOfAll(const worker::ExitStatus& status) const;
  // What the rendezvous is told of the first worker to fail. To be called while the others run.
  rendezvous::WorkerFailure FirstFailure(const worker::FailureRecord& record);
  void AddOthers(const std::vector<worker::FailureRecord>& records);

  // When the first worker to fail did, or began to hang; nullopt: none has failed yet.
  std::optional<rendezvous::TimePoint> failed_at() const { return failed_at_; }
  // Workers that failed by themselves after the first one, in the round that ended last.
  const std::vector<rendezvous::WorkerFailure>& other_failures() const { return other_failures_; }

 private:
  // A failure that each start would repeat is not followed by a restart.
  bool KnowsBadStarts() const;
  StartFacts StartOfRound(bool alike) const;
  rendezvous::WorkerFailure ToReport(const worker::FailureRecord& record) const;

  const AgentParts& parts_;
  std::chrono::steady_clock::time_point began_;
  int first_rank_ = 0;
  std::optional<worker::FlightFile> flights_;
  std::int64_t told_operations_at_ = 0;  // as FlightRecord has times
  std::optional<KernelLog> kernel_log_;  // since the round began; nullopt without GPUs
  std::optional<rendezvous::TimePoint> failed_at_;
  std::vector<rendezvous::WorkerFailure> other_failures_;
};

// What the workers of a node tell of their steps, until the rendezvous hears of it.

// Beats come with each step, however short; the rendezvous gets one line a rank about once in a
// second. Times in it are medians of the last steps, so that one slow step does not show.
//
// Deterministic; not thread-safe. `now` never goes back.
class ProgressBook {
 public:
  // A round's workers, with ranks from `first_rank` on, are about to start. Of the round before
  // nothing is known any more.
  void Begin(rendezvous::RoundId round, int first_rank, int nproc);
  // The workers are gone, and nobody asks how far they had come.
  void Clear();

  // False: it is of no rank of ours, and nothing has changed.
  bool OnBeat(const worker::Beat& beat, rendezvous::TimePoint now);

  // Something is wrong with a rank, a phrase that follows "rank 3", until it is withdrawn or the
  // round is over. False: it is of no rank of ours, or is known already, and nothing has changed.
  bool SetRankAlert(int rank, rendezvous::RankAlertKind kind, const std::string& what,
                    rendezvous::TimePoint now);
  // It is over. False: there was none.
  bool EndRankAlert(int rank, rendezvous::RankAlertKind kind);

  // Of the ranks that have beaten since they were told last; with `all`, of those that have beaten
  // at all. With it what is wrong with ranks, if that has changed; with `all`, if anything ever
  // was.
  rendezvous::Progress Take(bool all, rendezvous::TimePoint now);

 private:
  // What medians are made of.
  static constexpr std::size_t kSteps = 9;
  struct Rank {
    bool is_news = false;
    std::optional<rendezvous::TimePoint> last_beat;  // nullopt: none in this round
    std::optional<std::int64_t> step;
    std::optional<double> loss;
    std::optional<double> samples_per_second;
    std::deque<double> intervals;                       // from step to step, in seconds
    std::deque<std::vector<worker::BeatPhase>> phases;  // of steps for which they were told
    std::int64_t timed_steps = 0;
  };

  static rendezvous::RankProgress Tell(const Rank& rank, int local_rank, rendezvous::TimePoint now);

  rendezvous::RoundId round_;
  int first_rank_ = 0;
  std::vector<Rank> ranks_;
  struct Alert {
    std::string what;
    rendezvous::TimePoint since;
  };
  std::map<std::pair<int, rendezvous::RankAlertKind>, Alert> alerts_;  // by local rank
  bool had_alerts_ = false;                                            // in this round
  bool alerts_are_news_ = false;
};

}  // namespace muster::launcher
