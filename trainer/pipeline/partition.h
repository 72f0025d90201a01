// Where a model is cut into the parts of a pipeline.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Cuts stages that follow one another and cost `costs` into `parts` of about equal cost, each of at
// least one stage. Returns the stage that each part begins with; the first is 0.
//
// The rule: of all ways to cut, those whose most expensive part is cheapest, since all ranks wait
// for that one; of these, the one with the smallest sum of squares of the parts' costs, so that the
// others are as equal as can be; and of several, the one whose parts begin earliest, the last part
// counting first.
//
// kInvalidArgument and one sentence when there are more parts than stages, no parts, or a cost is
// negative or not finite.
absl::StatusOr<std::vector<std::size_t>> CutEvenly(const std::vector<double>& costs, int parts);

// The same with the names of the stages where parts begin after the first, as a user gives them:
// {"transformer.h.2", "transformer.h.4"} for three parts of a GPT. kInvalidArgument and one
// sentence when there is no stage of a name, or they are not in the order of the stages.
absl::StatusOr<std::vector<std::size_t>> CutAt(const std::vector<std::string>& stages,
                                               const std::vector<std::string>& begins);

}  // namespace muster::trainer
