// `muster doctor`: what is wrong with this machine, or between several, before a job finds out.
#pragma once

#include <string>
#include <vector>

namespace muster::launcher {

// `args` are those after `doctor`. Prints a report to stdout. Returns the exit code: 0; 1 when
// something was found by which a job will fail; 2 when the arguments are wrong; 4 when stdout
// cannot be written. Main thread; may take seconds.
int DoctorCommand(const std::vector<std::string>& args);

}  // namespace muster::launcher
