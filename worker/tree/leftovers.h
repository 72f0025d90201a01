// What workers have left behind when the last of them has ended.
#pragma once

#include <string>
#include <vector>

#include "worker/process/process_info.h"

namespace muster::worker {

// Signals leftovers once more where that is certain to disturb nothing, so that nobody has to wait
// for the grace to end: SIGTERM to what ignores the first signal, as a shell's background jobs do
// SIGINT; the first signal again to what has no handler for it and should have ended, but was
// between fork and exec when it came, with its parent's handler, which lost it. Only those are
// touched that are in `before`, the tree as it was just before the first signal: what was started
// since may be needed by somebody who answers it. Nobody is reminded twice: who was is taken out of
// `before`.
//
// True when there are others of `before`, with a handler: they are answering, or have not come to
// their exec yet, so one has to look again.
bool RemindLeftovers(const std::vector<ProcessInfo>& leftovers, std::vector<ProcessInfo>& before,
                     int first_signal);

// "python3 (pid 17), sleep (pid 19) and 4 more": the first eight by name.
std::string Enumerate(const std::vector<ProcessInfo>& processes);

}  // namespace muster::worker
