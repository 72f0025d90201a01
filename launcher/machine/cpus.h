// The CPUs that this process may use: sets of them, and the time that control groups allow.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// CPU sets in the kernel's notation: "0-3,8".

// CPU numbers as the kernel counts them; there may be more than 1024.
using CpuList = std::set<int>;

// Parses a *list file of /sys, with or without the newline; an empty text means no CPUs. nullopt if
// it is malformed.
std::optional<CpuList> ParseCpuList(absl::string_view text);

// "0-3,8": consecutive numbers become ranges.
std::string PrintCpuList(const CpuList& cpus);

// The CPUs in this process's affinity mask, which cpusets and taskset narrow.
CpuList AllowedCpus();

// The CPU time that this process's control groups allow.

// The quota of one control group, from the files in its directory (version 2 or 1), in CPU seconds
// per second, such as 1.5; nullopt if it has none.
std::optional<double> CpuQuotaIn(const std::string& directory);

// The lowest quota of this process's groups and their ancestors; nullopt if there is none.
std::optional<double> CpuQuota();

// The number of CPUs for counting workers: those in the affinity mask, or the quota rounded up if
// that is less. At least one.
int CountCpus(int allowed, std::optional<double> quota);

}  // namespace muster::launcher
