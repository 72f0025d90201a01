// This program, as it is sent to hosts that do not have it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster::launcher {

// The file that this process runs, also when another has taken its path since. Both read it
// through, which takes tenths of a second, and keep little more in memory than what they return.

// Its SHA-256, in hexadecimal: by it a host knows that what has come is what was sent, and finds it
// again.
absl::StatusOr<std::string> HashOwnProgram();

// The file, gzipped.
absl::StatusOr<std::string> PackOwnProgram();

// What tells this program from every other that was built: its linker's build id, in hexadecimal;
// empty where it has none.
std::string OwnBuild();

}  // namespace muster::launcher
