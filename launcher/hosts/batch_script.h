// A script for sbatch that runs a job.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// `flags` are sbatch's, as they would be typed; `program` is this program's path, and `run` what
// follows `muster run`. One process is started on each node, which is what muster wants of srun.
// InvalidArgument, one sentence, where `flags` hold something that is no flag: it would be taken
// for a comment.
absl::StatusOr<std::string> BatchScript(const std::vector<std::string>& flags,
                                        const std::string& program,
                                        const std::vector<std::string>& run);

}  // namespace muster::launcher
