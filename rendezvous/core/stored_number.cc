#include "rendezvous/core/stored_number.h"

#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"

namespace muster::rendezvous {

absl::StatusOr<std::int64_t> ParseStoredNumber(std::string_view text) {
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  // from_chars takes a minus, but no plus.
  const bool plus = !text.empty() && text.front() == '+';
  if (plus) text.remove_prefix(1);
  std::int64_t number = 0;
  const std::errc error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
  if (error == std::errc::invalid_argument || (plus && text.front() == '-')) {
    return absl::FailedPreconditionError("the value is not a number");
  }
  if (error != std::errc()) return absl::OutOfRangeError("the value does not fit in 64 bits");
  return number;
}

std::int64_t AddStoredNumbers(std::int64_t a, std::int64_t b) {
  // Unsigned, because signed overflow is undefined.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace muster::rendezvous
