// Sets of CPUs, in the kernel's notation: "0-3,8".
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::launcher {

// CPU numbers as the kernel counts them; there may be more than 1024.
using CpuList = std::set<int>;

// Reads what the files called *list in /sys say, with or without the line's end; empty text is no
// CPU. Nothing when it is no such list.
std::optional<CpuList> ParseCpuList(absl::string_view text);

// "0-3,8": ranges where two or more follow each other.
std::string PrintCpuList(const CpuList& cpus);

// The CPUs that this process may run on: its affinity mask, which cpusets and taskset narrow.
CpuList AllowedCpus();

}  // namespace muster::launcher
