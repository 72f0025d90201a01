// c10d's error about parameters left unused in a step, turned into a sentence that helps.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::trainer {

// When gradients were missing in a step, c10d::Reducer throws at the start of the next one
// ("Expected to have finished reduction in the prior iteration"). Returns one sentence for that
// `message` that says which of `names` (in the Reducer's order) were unused on `rank`, and what to
// change. nullopt when `message` is about something else.
std::optional<std::string> UnusedParametersSentence(const std::string& message,
                                                    const std::vector<std::string>& names, int rank,
                                                    bool find_unused_parameters);

}  // namespace muster::trainer
