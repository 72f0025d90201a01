// Exceptions as statuses that remember where they were thrown.
#pragma once

#include <exception>
#include <string>

#include "absl/status/status.h"

namespace muster::trainer {

// `attempt`, a colon and what `error` says on one line, with the stack that the exception carries
// (LibTorch's do) or else the one that calls this. kInvalidArgument for a std::invalid_argument,
// which is how code that is called through LibTorch says that the user has to change something;
// otherwise kUnavailable. `attempt` may be empty.
absl::Status FailureOf(const std::string& attempt, const std::exception& error);

// The stack that `status` carries, a frame on each line, innermost first; empty when it has none.
std::string StackOf(const absl::Status& status);

// The stack of the caller, a frame on each line, innermost first, with C++ names where the binary
// or a shared library exports them, else a place that addr2line understands.
std::string CurrentStack();

}  // namespace muster::trainer
