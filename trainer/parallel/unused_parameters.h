// What c10d says when parameters were left out of a step, in words that help.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::trainer {

// One sentence for the message that c10d::Reducer throws at the beginning of the step after one in
// which some gradients never came ("Expected to have finished reduction in the prior iteration"):
// which of `names` (in the Reducer's order) those are, and what to set. Nothing when `message` is
// about something else.
std::optional<std::string> UnusedParametersSentence(const std::string& message,
                                                    const std::vector<std::string>& names, int rank,
                                                    bool find_unused_parameters);

}  // namespace muster::trainer
