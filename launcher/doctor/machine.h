// Everything that a machine can check about itself.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launcher/doctor/report.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

struct Examination {
  // The value of --log-dir; empty: a directory in TMPDIR.
  std::string log_dir;
  std::vector<std::string> checkpoints;
  // The job spans several machines.
  bool has_peers = false;
};

// Checks this machine; call it on the main thread. May wait for DNS, disks, the GPU driver and
// Python, usually for less than a second in all.
Report ExamineMachine(const Examination& examination, const Environment& environment);

// This machine's clock, as far as the machine itself knows.

struct ClockFacts {
  std::chrono::system_clock::time_point now;
  // The kernel reports that something, such as chrony or ntpd, disciplines the clock.
  bool is_synchronized = false;
  // The clock source: "tsc", "kvm-clock", "hpet"; empty if unknown.
  std::string source;
};

ClockFacts ReadClock();

void Judge(const ClockFacts& clock, Report& report);

// What should be equal on all hosts of a job: versions of this program, the kernel, Python,
// PyTorch, NCCL.

struct Versions {
  // By name: "muster", "kernel", "system", "glibc"; and, if Python has them, "Python", "PyTorch",
  // "NCCL". Missing ones are left out.
  std::map<std::string, std::string> found;
  // Why Muster cannot run on this kernel; empty if it can.
  std::string kernel_trouble;
};

// Asks the Python that would run scripts, for at most `limit`, without importing PyTorch. Call it
// on the main thread.
Versions ReadVersions(const Environment& environment,
                      std::chrono::milliseconds limit = std::chrono::seconds(10));

void Judge(const Versions& versions, Report& report);

}  // namespace muster::launcher
