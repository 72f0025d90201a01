// Numbers as c10d's servers keep them: as the decimal text of a value.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::rendezvous {

// Reads a number by the rules of std::stoll, which every c10d server follows: leading blanks, a
// sign and the digits up to the first other byte, whatever follows it. FailedPrecondition when
// there is none, OutOfRange when it does not fit; the message ends a sentence: "the value is not a
// number".
absl::StatusOr<std::int64_t> ParseStoredNumber(std::string_view text);

// The sum, which wraps around if it does not fit, as with every c10d server.
std::int64_t AddStoredNumbers(std::int64_t a, std::int64_t b);

}  // namespace muster::rendezvous
