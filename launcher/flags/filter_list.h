// Lists in flags whose entries may hold commas.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// Entries between commas; two commas in a row are one comma of the entry, as in torchrun's
// --duplicate-stdout-filters. Empty entries are left out (torchrun keeps them, and an empty text is
// in every line).
std::vector<std::string> SplitFilters(absl::string_view text);

}  // namespace muster::launcher
