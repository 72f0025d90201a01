// Ranks of this program on this machine, started by Muster's launcher.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

// The path of the launcher: `asked`, or if that is empty the `muster` beside this program, or else
// the first one in PATH. kInvalidArgument with a sentence that names --launcher when there is none.
absl::StatusOr<std::string> FindLauncher(const std::string& asked);

// Runs `ranks` processes of this program with `arguments` under `launcher`, and waits until it has
// ended. Their stdout is discarded, their stderr and the launcher's are not. SIGINT and SIGTERM
// that arrive meanwhile go to the launcher, which stops the ranks. When a rank's exit code is not
// 0, an error with it: kInvalidArgument for 2, with which a rank says that the user has to change
// something, else kUnavailable. One call at a time.
absl::Status RunByMuster(const std::string& launcher, const std::vector<std::string>& arguments,
                         int ranks);

}  // namespace muster::trainer
