// The text of `muster run --help` and `muster launch --help`.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/flags/flag_scanner.h"

namespace muster::launcher {

// Every flag of the table under its group's heading, with its default; lines of at most 100
// columns.
std::string HelpText(Dialect dialect);

// The same of these flags alone, without headings, for the help of another command.
std::string FlagsHelp(absl::Span<const absl::string_view> names);

}  // namespace muster::launcher
