// Whether this node may take part in a round. It must be known before the node asks for a place.
//
// If the user wants a health check, it runs before each Join, and its failure says why the node is
// not fit; before the next round the node may be fit again. A worker that SIGKILL does not end
// makes the node unfit for ever, as it keeps the node's devices; then there is nothing left to
// check.
//
// An unfit node asks for a place all the same, and says why it is unfit: the rendezvous makes it
// wait.
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

  // This node wants a place in the round after `after`. nullopt: the health check must be run
  // first, from the beginning if it is running already.
  std::optional<AskForPlace> BeforeJoin(rendezvous::RoundId after);
  // How the check ended. nullopt: nobody is waiting for it any more.
  std::optional<AskForPlace> OnHealth(const absl::Status& status);
  // The check is no longer wanted. True if it is running.
  bool Drop();
  // Notes whether a worker was left behind that SIGKILL did not end.
  void OnWorkersGone(const worker::GroupResult& result);

 private:
  const HealthCheck check_;
  // While the check runs: the round that BeforeJoin named.
  std::optional<rendezvous::RoundId> checking_after_;
  // Why this node can never take part again; empty: it can.
  std::string unfit_;
};

}  // namespace muster::launcher
