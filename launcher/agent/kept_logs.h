// What this node keeps of what its workers have printed, round by round.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "rendezvous/core/types.h"
#include "worker/output/stream_log.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// Files are whoever's who has named the log directory, and stay. Memory is kept for the last
// kInMemory rounds: 64 to 128 KiB for each stream without a file that passes through the agent.
class KeptLogs {
 public:
  static constexpr std::size_t kRounds = 16;
  static constexpr std::size_t kInMemory = 3;

  struct Rank {
    int rank = 0;
    std::shared_ptr<worker::StreamLog> out;
    std::shared_ptr<worker::StreamLog> err;
  };

  // These workers are about to be started in `round`: what they print is kept from now on.
  void BeginRound(rendezvous::RoundId round, std::vector<worker::WorkerSpec>& specs);

  // They are gone, or were never started: nothing more comes.
  void EndRound();

  // The workers of that round, by rank; null: nothing of it is kept.
  const std::vector<Rank>* Find(rendezvous::RoundId round) const;

  // Neither that round nor a later one of that life of the job has begun here.
  bool IsToCome(rendezvous::RoundId round) const;

 private:
  struct Round {
    rendezvous::RoundId id;
    std::vector<Rank> ranks;
  };

  std::deque<Round> rounds_;  // the last one last
};

}  // namespace muster::launcher
