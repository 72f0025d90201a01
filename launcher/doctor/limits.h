// The resource limits that processes started from here inherit (setrlimit).
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/doctor/report.h"

namespace muster::launcher {

struct Limits {
  rlimit open_files = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit processes = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit locked_memory = {RLIM_INFINITY, RLIM_INFINITY};  // bytes
  rlimit file_size = {RLIM_INFINITY, RLIM_INFINITY};      // bytes
  rlimit address_space = {RLIM_INFINITY, RLIM_INFINITY};  // bytes
  // Root is exempt from the limits on processes and on locked memory.
  bool is_root = false;
  // There is RDMA hardware.
  bool has_rdma = false;
};

Limits ReadLimits();

void Judge(const Limits& limits, Report& report);

// The control groups of this process (version 2, or 1) and what they leave for workers.

struct ControlGroup {
  // "/user.slice/job-7"; empty if no version 2 hierarchy is visible.
  std::string name;
  // Workers can get a group of their own below it.
  bool is_delegated = false;
  // The limits are the lowest of this process's groups and their ancestors; nullopt: none.
  std::optional<std::uint64_t> memory_max;  // bytes
  // Bytes used in the group with that limit, without reclaimable page cache.
  std::optional<std::uint64_t> memory_used;
  std::optional<double> cpus;  // CPU seconds per second
  std::optional<std::uint64_t> pids_max;
  std::optional<std::uint64_t> pids_used;  // in the group with that limit
  // CPUs in the affinity mask.
  int allowed_cpus = 1;
};

// Also creates and removes a group below this process's, to see whether that works.
ControlGroup ReadControlGroup();

void Judge(const ControlGroup& group, Report& report);

// /dev/shm, through which NCCL and PyTorch's data loaders pass data on one machine.

struct SharedMemory {
  std::string path;
  std::string trouble;      // the system's error if it is unusable; empty if it is fine
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;
};

// Checks the file system by creating a file there, and removes it.
SharedMemory ReadSharedMemory(const std::string& path = "/dev/shm");

void Judge(const SharedMemory& facts, Report& report);

}  // namespace muster::launcher
