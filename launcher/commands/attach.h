// `muster attach`: what a run prints that was started with --detach.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/cli/command.h"
#include "launcher/machine/environment.h"
#include "launcher/run/detached_run.h"

namespace muster::launcher {

// Prints what the run has printed and what it prints until it ends. Exit code: the run's; 4 after a
// sentence when it was killed, or when there is nothing to read.
base::Command AttachCommand();

// `muster run --detach`: the run goes on without the terminal in which it was typed.

// Forks. In the new process, which leads a session of its own and whose output goes to a file, it
// returns what the run has to finish. In the one that called it returns the exit code: 0 once the
// other process is there and stdout says how to find it, 4 after a sentence on stderr. To be called
// before there is a thread.
std::variant<DetachedRun, int> Detach(const std::string& run_id, const Environment& environment);

}  // namespace muster::launcher
