// Lists in flags whose entries may contain commas.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// Entries separated by commas; two commas in a row are a comma within an entry, as in torchrun's
// --duplicate-stdout-filters. Empty entries are left out (torchrun keeps them, and every line
// contains an empty text).
std::vector<std::string> SplitFilters(absl::string_view text);

}  // namespace muster::launcher
