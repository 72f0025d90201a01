// The control groups of this process (version 2, or 1): what it leaves to workers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/doctor/report.h"

namespace muster::launcher {

struct ControlGroup {
  // "/user.slice/job-7"; empty: there is no hierarchy of version 2 to see.
  std::string name;
  // Workers can be given a group of their own below it.
  bool is_delegated = false;
  // The narrowest limit of the groups of this process and those above; nullopt: none.
  std::optional<std::uint64_t> memory_max;  // bytes
  // Bytes, of the group with that limit, without what the kernel can take back at any time.
  std::optional<std::uint64_t> memory_used;
  std::optional<double> cpus;  // CPU seconds in a second
  std::optional<std::uint64_t> pids_max;
  std::optional<std::uint64_t> pids_used;  // of the group with that limit
  // CPUs that this process may run on.
  int allowed_cpus = 1;
};

// Makes a group below this process's and removes it.
ControlGroup ReadControlGroup();

void Judge(const ControlGroup& group, Report& report);

}  // namespace muster::launcher
