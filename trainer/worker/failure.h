// Converts exceptions to statuses that keep the stack trace.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace muster::trainer {

// A status with the message "`attempt`: first line of `error`", or just the latter if `attempt` is
// empty. It keeps the stack that the exception carries (as LibTorch's do), or else the caller's.
// The code is kInvalidArgument for a std::invalid_argument, which code called through LibTorch
// throws when the user has to change something, and otherwise kUnavailable.
absl::Status FailureOf(const std::string& attempt, const std::exception& error);

// The same of the exception that is being handled, whatever it is: for catch (...).
absl::Status FailureNow(const std::string& attempt);

// The stack that `status` carries, one frame per line, innermost first; empty when it has none.
std::string StackOf(const absl::Status& status);

// `status`, as the failure of a rank that has not joined the others yet. Unless they are told, for
// which there is `timeout`, they wait for it.
absl::Status BeforeJoining(absl::Status status, std::chrono::milliseconds timeout);

// The timeout that BeforeJoining gave `status`; none for a failure that others need not be told.
std::optional<std::chrono::milliseconds> TimeToTell(const absl::Status& status);

// The caller's stack, one frame per line, innermost first. Each has the file and an offset that
// addr2line understands, and the C++ name if the binary or shared library exports it.
std::string CurrentStack();

}  // namespace muster::trainer
