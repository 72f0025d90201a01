// What rendezvous/core/key_value_store.h says of a store's values, said again as a model for the
// checker; limits, waits and queues are left out. It shares no code with the store it judges.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "test/linearizability/checker.h"
#include "test/linearizability/store_history.h"

namespace muster::linearizability {

// The keys that exist, with their values.
using StoreState = std::map<std::string, std::string>;

// Does the call to `state` at once, and answers it.
StoreAnswer Apply(const StoreCall& call, StoreState& state);

struct StoreVerdict {
  Answer answer = Answer::kLinearizable;
  // Unless linearizable: which keys it is about, and Verdict::explanation.
  std::string explanation;
};

// Whether a store that was empty at first can have given these answers. Each key is checked by
// itself, which is enough and much faster, but for those that some call names together: these are
// checked as one.
//
// The worst answer of all parts is given: not linearizable before gave up.
StoreVerdict CheckStore(const StoreHistory& history,
                        std::size_t max_configurations = kMaxConfigurations);

}  // namespace muster::linearizability
