// /dev/shm: what NCCL, and the loaders of PyTorch, pass data through on one machine.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/doctor/report.h"

namespace muster::launcher {

struct SharedMemory {
  std::string path;
  std::string trouble;      // why it cannot be used, as the system says it; empty: it can
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;
};

// Looks at the file system, and makes and removes a file there.
SharedMemory ReadSharedMemory(const std::string& path = "/dev/shm");

void Judge(const SharedMemory& facts, Report& report);

}  // namespace muster::launcher
