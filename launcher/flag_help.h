// The text of `muster run --help`.
#pragma once

#include <string>

namespace muster::launcher {

// Every flag of the table under its group's heading, with its default; lines of at most 100
// columns.
std::string RunHelp();

}  // namespace muster::launcher
