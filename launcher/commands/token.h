// `muster token`: makes and shows the secret that the nodes of jobs share.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// The arguments after `token`. Returns the exit code.
int TokenCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
