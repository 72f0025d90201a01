// Signals by name.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

// SIGTERM for "SIGTERM"; also without "SIG", as `kill -l` prints them. nullopt when it is not the
// name of a signal.
std::optional<int> ParseSignal(absl::string_view name);

// "SIGSEGV"; "SIGRTMIN+3"; "signal 99" for a number without a name.
std::string SignalName(int signal);

}  // namespace muster::base
