// Which file a worker's argv[0] means, and what to tell the user when it cannot be run.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::worker {

// The file that execvp would run for `name` with this value of PATH (nullptr: unset). A name with a
// slash is returned as it is, whatever it names: exec itself says what is wrong with it. NotFound
// when PATH has no such program, PermissionDenied when it has one that is not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name, const char* path);

// One clear sentence for execve(program) failing with `error`: "./train: No such file or
// directory", "./data.txt: Permission denied (not executable)". Looks at the file to distinguish
// causes that share an errno. NotFound for ENOENT, PermissionDenied for EACCES, FailedPrecondition
// for the rest.
absl::Status ExecError(const std::string& program, int error);

}  // namespace muster::worker
