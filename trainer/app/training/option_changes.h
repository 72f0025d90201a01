// Saves options in a checkpoint, and compares them with those of a run that resumes from it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// Returns {"--lr": "0.02", ...}: every flag with its value, as a user would give it, so that the
// run can be repeated. Paths that are not given are left out.
Value OptionsValue(const std::vector<Setting>& settings);

// Returns flags in the same form.
Value FlagsValue(const std::vector<ModelFlag>& flags);

// Compares the options in `snapshot`, a checkpoint, with those of a run that resumes from it.
// Returns sentences for the user about options that have changed, and about what a checkpoint of an
// older version does not say. kInvalidArgument, and one sentence that names the flag, when the
// model or the data is another one.
absl::StatusOr<std::vector<std::string>> CompareOptions(const Value& snapshot,
                                                        const Options& options);

}  // namespace muster::trainer
