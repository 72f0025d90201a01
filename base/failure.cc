#include "base/failure.h"

#include <sys/resource.h>

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
  std::string cause = std::generic_category().message(error);
  // Show the limit: a login, a service manager or a batch system may have set it.
  rlimit files;
  if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    absl::StrAppend(&cause, " (the limit on the size of files, ulimit -f, is ", files.rlim_cur,
                    " bytes)");
  }
  return cause;
}

std::string OpenCause(int error) {
  return error == ELOOP ? "it is a symbolic link" : SystemCause(error);
}

}  // namespace muster::base
