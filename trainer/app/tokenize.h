// muster-train tokenize: encodes text into a file of tokens.
#pragma once

#include <istream>
#include <ostream>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Encodes files, or `in` for "-", into one file of tokens; memory does not depend on their size.
// `argv` begins with "tokenize". Prints progress to `out`, as one changing line if that is a
// `terminal`, and at the end what was written. Returns the exit code. kInvalidArgument for a
// mistake in the flags or a file that cannot be read or created, kUnavailable when writing fails;
// then the output path is untouched.
absl::StatusOr<int> Tokenize(int argc, const char* const* argv, std::istream& in, std::ostream& out,
                             bool terminal);

}  // namespace muster::trainer
