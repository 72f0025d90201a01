// close_range(2), and what takes its place where that is missing: on Linux before 5.9, and where a
// container's filter of system calls does not know it. Everything here is async-signal-safe: it is
// for the time between fork and exec.
#pragma once

namespace muster::worker {

// The system call is there. Asked each time, as that costs less than a microsecond.
bool HasCloseRange();

// Closes every descriptor from `first` on.
void CloseFrom(int first);

// Leaves them open until exec.
void CloseOnExecFrom(int first);

}  // namespace muster::worker
