// close_range(2), and its replacement where it is missing: on Linux before 5.9, and where a
// container's system call filter does not know it. Everything here is async-signal-safe: it is for
// the time between fork and exec.
#pragma once

namespace muster::worker {

// Whether the system call exists. Checked each time, as that costs less than a microsecond.
bool HasCloseRange();

// Closes every descriptor from `first` on.
void CloseFrom(int first);

// The same, but leaves them open until exec.
void CloseOnExecFrom(int first);

}  // namespace muster::worker
