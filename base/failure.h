// What went wrong, in the one form that all messages have: attempt, object, cause.
#pragma once

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::base {

// "open log file /x: it is not a regular file". An empty `object` is left out: "fork: no memory".
// The code is for whoever handles the failure; it is not part of the sentence.
absl::Status Failure(absl::StatusCode code, absl::string_view attempt, absl::string_view object,
                     absl::string_view cause);

// The same, as the system says it: "open log file /x: Permission denied". To be called before
// anything else can change errno, or with what it was.
absl::Status SystemFailure(absl::StatusCode code, absl::string_view attempt,
                           absl::string_view object = "", int error = errno);

// The cause alone: "Permission denied".
std::string SystemCause(int error = errno);

// Why open() with O_NOFOLLOW has failed: for it, "too many levels of symbolic links" means that
// there is one.
std::string OpenCause(int error = errno);

}  // namespace muster::base
