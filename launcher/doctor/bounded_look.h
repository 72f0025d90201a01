// Runs a check that may block forever, for example on a file system whose server is down, in a
// child process that is abandoned after a timeout.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "worker/process/process.h"

namespace muster::launcher {

// The strings that a child reported, in order. They contain no zero byte.
struct ProbeOutput {
  std::vector<std::string> said;
  // The child finished. If false, it timed out or died.
  bool is_whole = false;
  // The child timed out.
  bool is_late = false;
};

using Say = std::function<void(const std::string&)>;

// Calls `look` in a child process, for at most `limit`. The child has this process's memory but
// none of its descriptors. A child stuck in an uninterruptible system call survives SIGKILL and is
// not waited for. If no child can be created, `look` runs in this process, without a limit. Only
// for single-threaded processes.
ProbeOutput LookWithin(std::chrono::milliseconds limit,
                       const std::function<void(const Say&)>& look);

// What the program has printed until its end or its limit; empty if it cannot be started. Blocks.
std::string OutputOf(worker::TimedCommandOptions options);

}  // namespace muster::launcher
