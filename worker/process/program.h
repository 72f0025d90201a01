// Finds the program for argv[0], and explains why one cannot be run.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::worker {

// The file that execvp would run for `name` with this PATH (nullptr: unset). A name with a slash is
// returned unchecked: exec itself reports what is wrong with it. NotFound if PATH has no such
// program, PermissionDenied if it is not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name, const char* path);

// Explains why execve(program) failed with `error`: "./train: No such file or directory",
// "./data.txt: Permission denied (not executable)". Inspects the file to tell causes with the same
// errno apart. NotFound for ENOENT, PermissionDenied for EACCES, FailedPrecondition otherwise.
absl::Status ExecError(const std::string& program, int error);

}  // namespace muster::worker
