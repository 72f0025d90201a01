// Signals as users name them.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// SIGTERM for "SIGTERM"; also without "SIG", as `kill -l` says them. Nothing for what is no name of
// a signal.
std::optional<int> ParseSignal(absl::string_view name);

}  // namespace muster::launcher
