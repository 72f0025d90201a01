// Text from logs as it may be shown: it obeys nobody and deceives nobody.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// With '?' for each character that a terminal would obey, which are the control characters of both
// sets (U+0000 to U+001F but for line feeds, U+007F to U+009F), and for each that has what follows
// shown in another order than it is written, such as U+202E: with one of these a name of a file or
// a cause reads as something else.
std::string Harmless(absl::string_view text);

}  // namespace muster::launcher
