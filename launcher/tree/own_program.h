// Where this program is.
#pragma once

#include <string>

namespace muster::launcher {

// The path of the file that this process runs, or "muster" if it is not known.
std::string OwnProgram();

}  // namespace muster::launcher
