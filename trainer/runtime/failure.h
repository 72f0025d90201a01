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
// throws if the user has to change something, and otherwise kUnavailable.
absl::Status FailureOf(const std::string& attempt, const std::exception& error);

// The same for the exception being handled, of any type: for catch (...).
absl::Status FailureNow(const std::string& attempt);

// The stack in `status`, one frame per line, innermost first; empty if there is none.
std::string StackOf(const absl::Status& status);

// Marks `status` as the failure of a rank that has not joined the others yet. They wait for it
// until they are told, which may take up to `timeout`.
absl::Status BeforeJoining(absl::Status status, std::chrono::milliseconds timeout);

// The timeout set by BeforeJoining; nullopt if the others need not be told.
std::optional<std::chrono::milliseconds> TimeToTell(const absl::Status& status);

// The caller's stack, one frame per line, innermost first. Each has the file and an offset for
// addr2line, and the C++ name if the binary or shared library exports it.
std::string CurrentStack();

// Third-party exceptions as one readable line.

// The first line of the message of `error`, without its stack trace: LibTorch's and Gloo's messages
// can fill a screen.
std::string OneLine(const std::exception& error);

}  // namespace muster::trainer
