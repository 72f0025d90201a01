// Starts one worker: makes its directory, opens the destinations of its output, and runs its
// program.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "absl/status/statusor.h"
#include "worker/exit_status.h"
#include "worker/group/group_worker.h"
#include "worker/process/stdio_slots.h"
#include "worker/worker_spec.h"

namespace muster::worker {

class Console;

// What the workers of a group have in common. Lives on the loop's thread, while they are started;
// `io` and `console` must outlive the workers.
class WorkerStarter {
 public:
  struct Callbacks {
    // A log file accepts no more (Output::Open).
    std::function<void(const std::string&)> on_log_loss;
    // It has ended (Process).
    std::function<void(const ExitStatus&)> on_exit;
  };

  // `cgroup_fd` is the directory of the control group that workers are to be in; -1: none.
  WorkerStarter(boost::asio::io_context& io, Console& console, int cgroup_fd);

  // Returns when the worker has called exec, or with the reason why it could not.
  // ResourceExhausted: the system cannot create a process.
  absl::StatusOr<std::unique_ptr<GroupWorker>> Start(const WorkerSpec& spec, Callbacks callbacks);

 private:
  boost::asio::io_context& io_;
  Console& console_;
  const int cgroup_fd_;
  std::optional<StdioSlots> slots_;
};

}  // namespace muster::worker
