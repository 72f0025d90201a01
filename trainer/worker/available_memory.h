// The memory that a process may count on.
#pragma once

#include <cstdint>
#include <string>

namespace muster::trainer {

// Bytes that all processes of this machine, or of this control group if it allows less, can still
// get: MemAvailable of /proc/meminfo, and memory.max less memory.current of the group and those
// above it; at least 1. 0 when the kernel does not say. `root` is where /proc and /sys are: empty,
// but in tests.
std::int64_t AvailableMemory(const std::string& root = "");

}  // namespace muster::trainer
