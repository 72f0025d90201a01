// What `--run-path` runs: a Python program that does, in a process of its own, what torchrun's
// runner does (torch/distributed/run.py, run_script_path, under @record).
#pragma once

namespace muster::launcher {

// Runs sys.argv[1] as __main__ with the rest of the arguments. An exception that leaves the script
// is written to TORCHELASTIC_ERROR_FILE in the form that error_file.h reads, and ends the process
// with code 1 and Python's traceback, as always.
inline constexpr char kRunPathProgram[] = R"(import json, os, runpy, sys, time, traceback
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except Exception as error:
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path and not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": {
                "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}, file)
    raise
)";

}  // namespace muster::launcher
