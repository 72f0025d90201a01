// What hosts of one job should have alike: this program, the kernel, Python, PyTorch, NCCL.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "launcher/doctor/report.h"
#include "launcher/environment.h"

namespace muster::launcher {

struct Versions {
  // By name: "muster", "kernel", "system", "glibc"; and, where Python has them, "Python",
  // "PyTorch", "NCCL". What is not there is left out.
  std::map<std::string, std::string> found;
  // Why Muster cannot run with this kernel; empty: it can.
  std::string kernel_trouble;
};

// Asks the Python that scripts would be run with, which is given `limit` to answer; on the main
// thread, and without importing PyTorch.
Versions ReadVersions(const Environment& environment,
                      std::chrono::milliseconds limit = std::chrono::seconds(10));

void Judge(const Versions& versions, Report& report);

}  // namespace muster::launcher
