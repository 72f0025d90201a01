// `muster top`: the jobs of a rendezvous on the whole terminal.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `top`. Returns the exit code: 0 when its user has left it; 1 when there is
// no such job; 2 for a mistake in the arguments, or where there is no terminal for it; 3 when no
// rendezvous answers; 128+n when signal n has ended it.
int TopCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
