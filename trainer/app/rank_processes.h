// Runs ranks as processes on this machine, without a launcher.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::trainer {

// Starts `ranks` processes of this program with `arguments`, which meet at a free loopback port,
// and waits for all of them. Their stdout is discarded. kUnavailable when a process cannot be
// started, or when one fails: it names the lowest rank that failed and its exit code. The other
// ranks then end by themselves, because they lose a peer.
absl::Status RunRankProcesses(const std::vector<std::string>& arguments, int ranks);

}  // namespace muster::trainer
