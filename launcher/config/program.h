// From the script on the command line to the command that each worker runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/config/launch_config.h"
#include "launcher/environment.h"

namespace muster::launcher {

// What the user said the first word of the command is.
enum class ProgramKind {
  kScript,   // a Python script, a script or executable of another kind, or a command in PATH
  kModule,   // -m: a Python module
  kRunPath,  // --run-path: a Python script, run by runpy in a Python process that we start
  kCommand,  // --no-python: a path, or a command in PATH, run as it is
};

// Makes the command for `command` (its first word and the arguments, not empty). Looks at the files
// it names and along PATH, so that a mistyped name is noticed before any node waits for this one. A
// file is a Python script when it ends in .py, or begins with "#!" and names python, or is neither
// executable nor a script of another kind. A script of another kind begins with "#!" or ends in
// .sh, and is run by its interpreter, executable or not. Python is PYTHON_EXEC, or else python3 or
// python in PATH, and runs with -u so that output is not held back. An error's message is a
// sentence for the user.
absl::StatusOr<Program> MakeProgram(const std::vector<std::string>& command, ProgramKind kind,
                                    const Environment& environment);

}  // namespace muster::launcher
