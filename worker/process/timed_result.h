// How a program ended that was run for what it prints (timed_command.h).
#pragma once

#include <optional>
#include <string>

#include "worker/exit_status.h"

namespace muster::worker {

struct TimedCommandResult {
  // nullopt when not even SIGKILL ended it (it hangs in the kernel); it is then left behind.
  std::optional<ExitStatus> status;
  // It was killed because its time was over.
  bool timed_out = false;
  // What it printed to stdout and stderr, as it came.
  std::string output;
  // There was more than output_limit.
  bool output_cut = false;
};

}  // namespace muster::worker
