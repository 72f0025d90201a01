// A process beside this one that nothing disturbs: for what must be done when this one is dead.
#pragma once

#include <sys/types.h>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace muster::base {

// Forks a process that calls `main`, which must not return. It leads a session of its own, is
// called `name` (15 characters at most) and blocks every signal that can be blocked: what one to
// the whole of this process's session means is this process's to decide. Everything else it
// inherits; `main` closes what it has no use for.
//
// May be called in a process with threads; then `main` may make async-signal-safe calls alone.
// Unavailable, in one sentence, when the system has no process to give.
absl::StatusOr<pid_t> StartCompanion(const char* name, absl::FunctionRef<void()> main);

// Waits for a child's end, whatever that is.
void Reap(pid_t child);

}  // namespace muster::base
