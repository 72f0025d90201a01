// The behaviour that rendezvous/core/job/key_value_store.h specifies, as a model for the checker,
// without limits, waits and queues. It shares no code with the store it checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "test/linearizability/checker.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// The keys that exist, with their values.
using StoreState = std::map<std::string, std::string>;

// Applies the call to `state` and returns its answer.
StoreAnswer Apply(const StoreCall& call, StoreState& state);

struct StoreVerdict {
  Answer answer = Answer::kLinearizable;
  // Unless linearizable: the keys concerned, and Verdict::explanation.
  std::string explanation;
};

// Checks whether a store that was initially empty can have given these answers. Each key is checked
// separately, which is sufficient and much faster, except that keys that occur together in a call
// are checked together.
//
// Returns the worst answer of all parts, where "not linearizable" is worse than "gave up".
StoreVerdict CheckStore(const StoreHistory& history,
                        std::size_t max_configurations = kMaxConfigurations);

}  // namespace muster::linearizability
