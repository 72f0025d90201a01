// A process beside this one that nothing disturbs, for what must be done when this one is dead.
#pragma once

#include <sys/types.h>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace muster::base {

// Lends the command line of this process to its companions, which write their names there: `pkill
// -f muster` must not hit, together with a process, what is there for its end. To be called by
// main() with what it was given, before anything else; without it companions keep the command line.
void LendCommandLine(int argc, char** argv);

// Forks a process that calls `main`, which must not return. It leads a session of its own, is
// called `name` (15 characters at most) and blocks every signal that can be blocked: what a signal
// to this process's whole session means is for this process to decide. It inherits everything else;
// `main` closes what it does not need.
//
// May be called in a process with threads; then `main` may only make async-signal-safe calls.
// Unavailable, in one sentence, when the system cannot create a process.
absl::StatusOr<pid_t> StartCompanion(const char* name, absl::FunctionRef<void()> main);

// Waits for a child's end, however it ends.
void Reap(pid_t child);

}  // namespace muster::base
