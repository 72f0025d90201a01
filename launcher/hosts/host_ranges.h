// Names of many hosts written as one, as pdsh writes them: node[1-3,07-12].
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::launcher {

// More hosts than any job has: what asks for more is a slip of the keyboard.
inline constexpr std::size_t kMaxHosts = 100'000;

// The names that `text` stands for, in the order in which it names them: "n[1,3-4]" is n1, n3 and
// n4, "n[08-10]" is n08, n09 and n10, "r[1-2]n[1-2]" is r1n1, r1n2, r2n1 and r2n2. A text without
// brackets is itself. An error's message is a phrase that follows the text it is about: "has a
// range that runs backwards, 9-3; write 3-9".
absl::StatusOr<std::vector<std::string>> ExpandRanges(absl::string_view text);

// The items of a list, "node[1-3,7],gpu07": a comma inside brackets is the range's. At least one,
// which may be empty; they refer to `text`.
std::vector<absl::string_view> SplitHostItems(absl::string_view text);

}  // namespace muster::launcher
