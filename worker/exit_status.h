// How a process ended.
#pragma once

namespace muster::worker {

struct ExitStatus {
  // What the process passed to exit(); meaningless when `signal` is set.
  int exit_code = 0;
  // The signal that ended it, or 0.
  int signal = 0;
  // The signal left a core dump.
  bool core_dumped = false;

  bool Succeeded() const { return signal == 0 && exit_code == 0; }

  bool operator==(const ExitStatus&) const = default;
};

}  // namespace muster::worker
