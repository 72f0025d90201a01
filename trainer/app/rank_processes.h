// Ranks as processes of this machine, without a launcher.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::trainer {

// Starts `ranks` processes of this very program with `arguments`, that meet at a free port of the
// loopback interface, and waits for all. Their standard output is dropped. kUnavailable, with the
// first rank that failed and its exit code, when one does; the others end by themselves, because
// they lose it.
absl::Status RunRankProcesses(const std::vector<std::string>& arguments, int ranks);

}  // namespace muster::trainer
