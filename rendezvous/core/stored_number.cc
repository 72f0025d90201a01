#include "rendezvous/core/stored_number.h"

#include <cstddef>
#include <limits>

#include "absl/strings/ascii.h"

namespace muster::rendezvous {
absl::StatusOr<std::int64_t> ParseStoredNumber(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && absl::ascii_isspace(static_cast<unsigned char>(text[at]))) ++at;
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  if (at == text.size() || !absl::ascii_isdigit(text[at])) {
    return absl::FailedPreconditionError("the value is not a number");
  }
  // Counted downwards, because the smallest number has no positive counterpart.
  std::int64_t number = 0;
  bool fits = true;
  for (; fits && at < text.size() && absl::ascii_isdigit(text[at]); ++at) {
    fits = !__builtin_mul_overflow(number, 10, &number) &&
           !__builtin_sub_overflow(number, text[at] - '0', &number);
  }
  if (!fits || (!negative && number == std::numeric_limits<std::int64_t>::min())) {
    return absl::OutOfRangeError("the value does not fit in 64 bits");
  }
  return negative ? number : -number;
}

std::int64_t AddStoredNumbers(std::int64_t a, std::int64_t b) {
  // Unsigned, because signed overflow is undefined.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace muster::rendezvous
