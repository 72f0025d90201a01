// The text of `muster run --help` and `muster launch --help`.
#pragma once

#include <string>

#include "launcher/flags/flag_scanner.h"

namespace muster::launcher {

// Every flag of the table under its group's heading, with its default; lines of at most 100
// columns.
std::string HelpText(Dialect dialect);

}  // namespace muster::launcher
