// One worker of a group that was started: its process and its two streams.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/exit_status.h"
#include "worker/group/group_result.h"
#include "worker/output/output.h"
#include "worker/process/process.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// It runs until `status` is set. Then `stopped_by_group` tells whether its end means anything: a
// worker that was still running when the group began to stop ends because of that, in whatever way.
// Without a status, `stuck` tells that it was given up, and why SIGKILL may not have ended it.
struct GroupWorker {
  WorkerSpec spec;
  std::unique_ptr<Output> out;
  std::unique_ptr<Output> err;
  std::unique_ptr<Process> process;
  std::optional<ExitStatus> status{};
  // When we saw its end, or killed it (WorkerGroup::KillFor), whichever was first.
  std::optional<std::chrono::steady_clock::time_point> ended_at{};
  bool stopped_by_group = false;
  // We killed it, and that was told as the group's failure: its exit is no further one.
  bool end_is_told = false;
  // As in WorkerExit.
  std::string stuck{};
  // Why we killed it, or a process that came from it (WorkerGroup::KillFor).
  std::string kill_reason{};

  pid_t pid() const { return process->pid(); }
  // When we last read something that it wrote.
  std::optional<std::chrono::steady_clock::time_point> LastOutput() const;
  // For the group's result.
  WorkerExit Exit() const;
};

using GroupWorkers = std::vector<std::unique_ptr<GroupWorker>>;

}  // namespace muster::worker
