// From the script on the command line to the command that each worker runs.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "launcher/cli/launch_config.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

// What the user said the first word of the command is.
enum class ProgramKind {
  kScript,   // a Python script, a script or executable of another kind, or a command in PATH
  kModule,   // -m: a Python module
  kRunPath,  // --run-path: a Python script, run by runpy in a Python process that we start
  kCommand,  // --no-python: a path, or a command in PATH, run as it is
};

// The variable by which a launch tree says which Python the command was typed under. It is for the
// agent alone: its workers do not get it.
inline constexpr char kPythonOfCommand[] = "MUSTER_PYTHON";

// Makes the command for `command` (its first word and the arguments, not empty). Looks at the files
// it names and along PATH, so that a mistyped name is noticed before any node waits for this one.
//
// A file that begins with "#!", or ends in .sh, is a script of the interpreter that it names, and
// is run by that, executable or not; a file of machine code (ELF) runs as it is. Everything else is
// Python's, as with torchrun: what ends in .py, names python in its first line, or is none of the
// former, whatever its permissions say; a folder or a zip with __main__.py; what is not a regular
// file, such as /dev/stdin; and "-".
//
// Python is PYTHON_EXEC, or else kPythonOfCommand where this machine has it, python3 or python in
// PATH, and runs with -u so that output is not held back. A program of a virtual environment that
// is not active (its first line names that environment's Python) is run by that Python: no other
// has its packages. An error's message is a sentence for the user.
absl::StatusOr<Program> MakeProgram(const std::vector<std::string>& command, ProgramKind kind,
                                    const Environment& environment);

// The Python of scripts here, as above; empty: there is none.
std::string PythonHere(const Environment& environment);

// What `--run-path` runs: a Python program that does, in a process of its own, what torchrun's
// runner does (torch/distributed/run.py, run_script_path, under @record).

// Runs sys.argv[1] as __main__ with the rest of the arguments. An exception that leaves the script
// is written to TORCHELASTIC_ERROR_FILE in the form that failure_report.h reads, and ends the
// process with code 1 and Python's traceback, as always.
//
// A script that is done is held until all others of its node are (worker/group/group_worker.h), as
// the children of torchrun are: some releases of PyTorch abort at exit when a peer is gone before
// them. What the script has started has no part in that: the descriptors are closed in what it
// forks, and are not inherited by what it executes.
inline constexpr char kRunPathProgram[] = R"(import json, os, runpy, sys, time, traceback
group = [int(end) for end in os.environ.pop("MUSTER_GROUP_END", "").split()]
for end in group:
    os.set_inheritable(end, False)
def leave_group():
    if len(group) == 2:
        os.close(group.pop())
os.register_at_fork(after_in_child=leave_group)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    if end.code:
        raise
except Exception as error:
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path and not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": {
                "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}, file)
    raise
leave_group()
if group:
    os.read(group[0], 1)
)";

// Whether the workers run that program.
inline bool IsRunPath(const Program& program) {
  return std::find(program.argv.begin(), program.argv.end(), kRunPathProgram) != program.argv.end();
}

}  // namespace muster::launcher
