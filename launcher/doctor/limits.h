// The limits that processes which are started from here have (setrlimit).
#pragma once

#include <sys/resource.h>

#include "launcher/doctor/report.h"

namespace muster::launcher {

struct Limits {
  rlimit open_files = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit processes = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit locked_memory = {RLIM_INFINITY, RLIM_INFINITY};  // bytes
  rlimit file_size = {RLIM_INFINITY, RLIM_INFINITY};      // bytes
  rlimit address_space = {RLIM_INFINITY, RLIM_INFINITY};  // bytes
  // The limit on processes does not hold for root, nor that on locked memory.
  bool is_root = false;
  // There is hardware for remote direct memory access.
  bool has_rdma = false;
};

Limits ReadLimits();

void Judge(const Limits& limits, Report& report);

}  // namespace muster::launcher
