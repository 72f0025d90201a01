// `muster run --detach`: the run goes on without the terminal in which it was typed.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "launcher/environment.h"
#include "launcher/registry/detached_run.h"

namespace muster::launcher {

// Forks. In the new process, which leads a session of its own and whose output goes to a file, it
// returns what the run has to finish. In the one that called it returns the exit code: 0 once the
// other process is there and stdout says how to find it, 4 after a sentence on stderr. To be called
// before there is a thread.
std::variant<DetachedRun, int> Detach(const std::string& run_id, const Environment& environment);

}  // namespace muster::launcher
