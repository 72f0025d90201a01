// What this node knows of the workers of a round when something goes wrong with them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/machine/gpu_health.h"
#include "launcher/run/failure_report.h"
#include "launcher/run/rank_layout.h"
#include "rendezvous/core/values/types.h"
#include "worker/exit_status.h"
#include "worker/flight_log.h"
#include "worker/flight_report.h"
#include "worker/group/group_life.h"

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

}  // namespace muster::launcher
