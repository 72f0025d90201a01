// What workers have left behind when the last of them has ended.
#pragma once

#include <string>
#include <vector>

#include "worker/process/process_info.h"

namespace muster::worker {

// Signals leftovers once more where that is certain to do no harm, so that the grace need not be
// waited out. SIGTERM goes to processes that ignore the first signal, as a shell's background jobs
// ignore SIGINT. The first signal goes again to processes that have no handler for it and should
// have ended, but were between fork and exec when it came and lost it in their parent's handler.
// Only processes in `before`, the tree just before the first signal, are touched: a process that is
// answering the signal may need one that was started since. None is reminded twice: those reminded
// are taken out of `before`.
//
// True when `before` has others, with a handler: they are answering, or have not reached their exec
// yet, so the caller has to look again.
bool RemindLeftovers(const std::vector<ProcessInfo>& leftovers, std::vector<ProcessInfo>& before,
                     int first_signal);

// "python3 (pid 17), sleep (pid 19) and 4 more": the first eight by name.
std::string Enumerate(const std::vector<ProcessInfo>& processes);

}  // namespace muster::worker
