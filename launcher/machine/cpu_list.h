// Sets of CPUs, in the kernel's notation: "0-3,8".
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// CPU numbers as the kernel counts them; there may be more than 1024.
using CpuList = std::set<int>;

// Reads the contents of a *list file in /sys, with or without the newline; empty text means no
// CPUs. nullopt when it is not such a list.
std::optional<CpuList> ParseCpuList(absl::string_view text);

// "0-3,8": consecutive numbers are printed as ranges.
std::string PrintCpuList(const CpuList& cpus);

// The CPUs that this process may run on: its affinity mask, which cpusets and taskset narrow.
CpuList AllowedCpus();

}  // namespace muster::launcher
