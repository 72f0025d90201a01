// The prefix of each line of a worker on the console (--log-line-prefix-template).
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// Replaces $name and ${name} by `values`, and $$ by $, as Python's string.Template.safe_substitute
// does: a name that is not in `values` is kept, in its ${name} form. So ${pid} and ${time}, which
// are known only later, are left to worker/ (OutputSpec::prefix).
std::string ExpandTemplate(absl::string_view text,
                           const std::map<std::string, std::string>& values);

}  // namespace muster::launcher
