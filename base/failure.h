// Builds error messages in the one form used everywhere: attempt, object, cause.
#pragma once

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// "open log file /x: it is not a regular file". An empty `object` is left out: "fork: no memory".
// The code is for the caller that handles the failure; it is not part of the message.
absl::Status Failure(absl::StatusCode code, absl::string_view attempt, absl::string_view object,
                     absl::string_view cause);

// The same with the system's cause: "open log file /x: Permission denied". Call it before anything
// else can change errno, or pass the saved value.
absl::Status SystemFailure(absl::StatusCode code, absl::string_view attempt,
                           absl::string_view object = "", int error = errno);

// The cause alone: "Permission denied".
std::string SystemCause(int error = errno);

// Why an open() with O_NOFOLLOW failed: there, ELOOP means that the file is a symbolic link.
std::string OpenCause(int error = errno);

}  // namespace muster::base
