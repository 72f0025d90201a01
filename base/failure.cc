#include "base/failure.h"

#include <system_error>

#include "absl/strings/str_cat.h"

namespace muster::base {

absl::Status Failure(absl::StatusCode code, absl::string_view attempt, absl::string_view object,
                     absl::string_view cause) {
  return absl::Status(code, absl::StrCat(attempt, object.empty() ? "" : " ", object, ": ", cause));
}

absl::Status SystemFailure(absl::StatusCode code, absl::string_view attempt,
                           absl::string_view object, int error) {
  return Failure(code, attempt, object, SystemCause(error));
}

std::string SystemCause(int error) {
  return std::generic_category().message(error);
}

std::string OpenCause(int error) {
  return error == ELOOP ? "it is a symbolic link" : SystemCause(error);
}

}  // namespace muster::base
