// The turns in a job's life that figures are made of.
#pragma once

#include <optional>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Why a round that ran, or gathered, was followed by another.
enum class RoundEnd {
  kWorkerFailed,    // one restart is spent
  kNodeLost,        // a member fell silent, or left without its workers having succeeded
  kNodeLeaving,     // a member said that it will leave
  kNodeJoined,      // a newcomer found a place
  kNodeRejoined,    // a member begins again
  kNodeOutOfTouch,  // a worker failed while another node was out of touch; nothing is spent
};

// "worker_failed": in labels of metrics, on the wire of HTTP and in JSON.
constexpr const char* Name(RoundEnd end) {
  switch (end) {
    case RoundEnd::kWorkerFailed:
      return "worker_failed";
    case RoundEnd::kNodeLost:
      return "node_lost";
    case RoundEnd::kNodeLeaving:
      return "node_leaving";
    case RoundEnd::kNodeJoined:
      return "node_joined";
    case RoundEnd::kNodeRejoined:
      return "node_rejoined";
    case RoundEnd::kNodeOutOfTouch:
      return "node_out_of_touch";
  }
  return "unknown";
}
inline constexpr int kRoundEnds = static_cast<int>(RoundEnd::kNodeOutOfTouch) + 1;

// "worker_failed": how a job ended, in labels of metrics and in JSON.
constexpr const char* Name(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSucceeded:
      return "succeeded";
    case VerdictKind::kWorkerFailed:
      return "worker_failed";
    case VerdictKind::kJoinTimeout:
      return "join_timeout";
    case VerdictKind::kClosed:
      return "closed";
  }
  return "unknown";
}
inline constexpr int kVerdictKinds = static_cast<int>(VerdictKind::kClosed) + 1;

struct RoundStarted {
  // From when it opened, which is when the one before was over, until its members were told their
  // ranks.
  Duration gathered{};
  // Whether a round of the job has run before.
  bool is_restart = false;
};
// All workers of the round have started.
struct RoundRuns {
  // From the end of the last round of which that could be said; nullopt: there was none.
  std::optional<Duration> recovered;
};
struct RoundOver {
  RoundEnd why = RoundEnd::kWorkerFailed;
  // From its start; nullopt: it never ran.
  std::optional<Duration> ran;
  // How long before what ended it happened, as far as that can be known (job.h); nullopt: nothing
  // had failed.
  std::optional<Duration> detected{};
};
struct JobEnded {
  VerdictKind how = VerdictKind::kSucceeded;
  // As of a round that is over.
  std::optional<Duration> detected{};
};

}  // namespace muster::rendezvous
