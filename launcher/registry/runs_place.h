// Where the runs of one user on one machine find one another.
#pragma once

#include <string>
#include <vector>

#include "launcher/environment.h"

namespace muster::launcher {

struct RunsPlace {
  std::string chosen;   // MUSTER_RUNS_DIR; empty: not set
  std::string runtime;  // XDG_RUNTIME_DIR; empty: not set
  std::string temp = "/tmp";
};

RunsPlace RunsPlaceOf(const Environment& environment);

// The directories, of which a run registers in the first that it can use: $MUSTER_RUNS_DIR alone,
// else $XDG_RUNTIME_DIR/muster, /tmp/muster-UID-RANDOM and /run/user/UID/muster. The others are
// searched because a batch job often lacks the XDG_RUNTIME_DIR that its user's terminal has.
//
// Nobody can know a name in /tmp and take it first: it is found by its beginning and its owner, and
// all that belong to this user are in the list. Where there is none, a new name is. At the end, if
// it is there, comes /tmp/muster-UID, where Muster before 0.5 has its runs.
//
// Reads /tmp, which may have thousands of entries: not before it is needed.
std::vector<std::string> RunsDirs(const RunsPlace& place);

}  // namespace muster::launcher
