// The names that users give to jobs and nodes. They become parts of file names, log lines and
// metric labels, so only one narrow form is accepted wherever a name enters, both at the daemon and
// at the agent.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace muster::rendezvous {

inline constexpr std::size_t kMaxNameLength = 64;

// Ok when `name` is 1 to 64 ASCII letters, digits, dots, underscores and hyphens, the first a
// letter or a digit, without two dots in a row. InvalidArgument otherwise, with one sentence that
// begins with `what`:
//   run id "../pwn" must start with a letter or a digit
// The sentence shows the name escaped and shortened, so it may be logged as it is.
absl::Status CheckName(std::string_view what, std::string_view name);

}  // namespace muster::rendezvous
