#include "base/seconds.h"

#include <cmath>

#include "absl/strings/numbers.h"

namespace muster::base {

std::optional<std::chrono::milliseconds> ParseSeconds(absl::string_view text) {
  // So that a deadline made of it stays inside std::chrono's nanoseconds.
  constexpr double kLongest = 1e9;
  double seconds = 0;
  // SimpleAtod takes "inf" and "nan" too; the comparisons are false for both.
  if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0) || !(seconds <= kLongest)) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

}  // namespace muster::base
