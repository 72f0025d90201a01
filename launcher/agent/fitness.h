// Whether this node may take part in a round: what must be known before it asks for a place.
//
// Where the user wants a health check, it runs before each Join, and says why the node is not fit;
// before the next round it may be fit again. A worker that SIGKILL does not end makes the node
// unfit for ever, as it has the node's devices; then there is nothing left to check.
//
// A node that is unfit asks nevertheless, and says why: the rendezvous has it wait.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "rendezvous/core/types.h"
#include "worker/group/group_result.h"

namespace muster::launcher {

// How this node asks for a place in the next round.
struct AskForPlace {
  // The last round in which it had workers.
  rendezvous::RoundId after;
  // Why it cannot take part; empty: it can.
  std::string unfit;
};

// Deterministic.
class Fitness {
 public:
  enum class HealthCheck { kNone, kBeforeEachJoin };

  explicit Fitness(HealthCheck check) : check_(check) {}

  // This node wants a place in the round after `after`. Nothing: the health check must be run
  // first, and anew if it runs already.
  std::optional<AskForPlace> BeforeJoin(rendezvous::RoundId after);
  // How the check ended. Nothing: it is not waited for any more.
  std::optional<AskForPlace> OnHealth(const absl::Status& status);
  // The check is not wanted any more. True if it runs.
  bool Drop();
  // A worker that SIGKILL did not end is left behind, if there is one.
  void OnWorkersGone(const worker::GroupResult& result);

 private:
  const HealthCheck check_;
  // While the check runs: the round that BeforeJoin named.
  std::optional<rendezvous::RoundId> checking_after_;
  // Why this node can never take part again; empty: it can.
  std::string unfit_;
};

}  // namespace muster::launcher
