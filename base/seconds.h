// Durations as users write them: a number of seconds.
#pragma once

#include <chrono>
#include <optional>

#include "absl/strings/string_view.h"

namespace muster::base {

// Reads "30" or "0.5". nullopt when it is not a number, is below zero or is longer than 30 years.
std::optional<std::chrono::milliseconds> ParseSeconds(absl::string_view text);

}  // namespace muster::base
