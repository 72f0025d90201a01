// One started worker of a group: its process and its two streams.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/async/timer.h"
#include "base/lifetime.h"
#include "base/unique_fd.h"
#include "worker/exit_status.h"
#include "worker/group/group_life.h"
#include "worker/output/output.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"
#include "worker/tree/cgroup.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// It runs until `status` is set. `stopped_by_group` then says that its exit means nothing, as it
// was still running when the group began to stop. A worker that was given up has no status; `stuck`
// says why SIGKILL may have failed.
struct GroupWorker {
  WorkerSpec spec;
  std::unique_ptr<Output> out;
  std::unique_ptr<Output> err;
  std::unique_ptr<Process> process;
  std::optional<ExitStatus> status{};
  // When its exit was noticed, or KillFor() killed it, whichever came first.
  std::optional<std::chrono::steady_clock::time_point> ended_at{};
  bool stopped_by_group = false;
  // We killed it and reported that as the group's failure: its exit is no further one.
  bool end_is_told = false;
  // As in WorkerExit.
  std::string stuck{};
  // Why we killed it or one of its descendants (WorkerGroup::KillFor).
  std::string kill_reason{};

  pid_t pid() const { return process->pid(); }
  // When its output was last read.
  std::optional<std::chrono::steady_clock::time_point> LastOutput() const;
  // For the group's result.
  WorkerExit Exit() const;
  // Of its output, which log files have not taken so far.
  std::uint64_t dropped_bytes() const { return out->dropped_bytes() + err->dropped_bytes(); }
};

using GroupWorkers = std::vector<std::unique_ptr<GroupWorker>>;

// Lets a worker wait until all others of its group are done: a pipe whose only write ends the
// workers hold. A worker closes its write end when it is done or dies, and reads end of file once
// all are closed. Nothing is ever written.

// This process's ends. Destroy it when all workers have been started; before, no worker reads end
// of file.
class EndPipe {
 public:
  // The environment variable with the worker's two descriptors, "3 4", the read end first.
  static constexpr char kVariable[] = "MUSTER_GROUP_END";

  static absl::StatusOr<EndPipe> Make();

  // Gives a worker both ends. `request` must have no descriptors other than 0, 1 and 2.
  void AddTo(SpawnRequest& request) const;

 private:
  base::UniqueFd reading_;
  base::UniqueFd writing_;
};

// Starts one worker: creates its directory, opens its output files, and runs its program.

class Console;

// What the workers of a group share while they are started. Lives on the loop's thread; `io` and
// `console` must outlive the workers.
class WorkerStarter {
 public:
  struct Callbacks {
    // A log file rejects data (Output::Open).
    std::function<void(const std::string&)> on_log_loss;
    // It waits at a debugger's prompt that the console does not show (Output::Open).
    std::function<void(const std::string&)> on_prompt;
    // It has exited (Process).
    std::function<void(const ExitStatus&)> on_exit;
  };

  // `cgroup_fd` is the directory of the workers' control group; -1: none.
  WorkerStarter(boost::asio::io_context& io, Console& console, int cgroup_fd);

  // Returns when the worker has called exec, or the reason why it could not. ResourceExhausted: the
  // system cannot create a process. `end` is shared with the others of the group; null: none.
  absl::StatusOr<std::unique_ptr<GroupWorker>> Start(const WorkerSpec& spec, const EndPipe* end,
                                                     Callbacks callbacks);

 private:
  boost::asio::io_context& io_;
  Console& console_;
  const int cgroup_fd_;
  std::optional<StdioSlots> slots_;
};

// A worker's own directory for its logs and error file.
//
// It is created and removed at its own worker's start and exit, not for all workers at once: on
// ext4 each costs some 60 us, which other CPUs can use for workers that already run.

// Creates it with mode 0700, as workers print secrets. An existing one is fine, as starts are
// retried. A kFailedPrecondition names the directory and the cause.
absl::Status MakeOwnDirectory(const std::string& directory);

// Removes it if it is empty.
void RemoveIfEmpty(const std::string& directory);

// Starts workers one after another, and retries later if the system cannot create a process now.

// Lives on the loop's thread. Either `on_over` or `on_failed` is called, once, from the loop: never
// before Begin() has returned.
class StartQueue {
 public:
  struct Callbacks {
    // Starts one worker; ResourceExhausted: the system cannot create a process now.
    std::function<absl::Status(const WorkerSpec&)> start;
    // No more workers will be started: all were, or the rest was dropped.
    std::function<void()> on_over;
    // This one could not be started; the rest were not tried.
    std::function<void(const WorkerSpec&, const absl::Status&)> on_failed;
  };

  StartQueue(boost::asio::io_context& io, Callbacks callbacks)
      : io_(io), callbacks_(std::move(callbacks)), retry_(io) {}
  StartQueue(const StartQueue&) = delete;
  StartQueue& operator=(const StartQueue&) = delete;

  // Starts them in order. If the system cannot create a process (fork: EAGAIN, ENOMEM), the rest
  // are retried from the loop for two seconds before that counts as a failure. Call once only.
  void Begin(std::vector<WorkerSpec> specs);

  // Drops the workers that were not started yet.
  void Drop();

 private:
  // Starts the remaining workers, the first of which has failed `tries` times.
  void StartRest(std::size_t tries);
  void Post(std::function<void()> call);

  boost::asio::io_context& io_;
  const Callbacks callbacks_;
  // In reverse order.
  std::vector<WorkerSpec> waiting_;
  base::Timer retry_;
  base::Lifetime lifetime_;
};

// For the user: a worker waits at the prompt of a debugger, which the console does not show.
std::string HiddenPrompt(const WorkerSpec& spec, const std::string& prompt);

// The record of a worker that failed, with what is known about why.

// Possible causes of a SIGKILL, the likeliest first.
struct KillSuspects {
  // Why we sent it (WorkerGroup::KillFor); empty: we did not.
  const std::string& kill_reason;
  // The guard killed the workers, which had lost touch (OrphanGuard::has_struck).
  bool guard_has_struck = false;
  // Asked last, as it explains each kill only once.
  OomWatch& oom;
};

// DeadlineExceeded: its node had lost touch with the rendezvous (WorkerGroup::SetDeadline).
FailureRecord CouldNotBeStarted(const WorkerSpec& spec, const absl::Status& status);

// `status` must not be a success.
FailureRecord FailedWith(const WorkerSpec& spec, pid_t pid, const ExitStatus& status,
                         std::string stderr_tail, const KillSuspects& suspects);

}  // namespace muster::worker
