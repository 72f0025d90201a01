// Starts a process: vfork-like clone, clean state, exec.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/unique_fd.h"

namespace muster::worker {

// Low-numbered descriptors for a child's descriptors 0, 1 and 2.

// A child copies our descriptor table up to the highest number that it needs. The agent has two or
// more descriptors per worker, so without slots reserved early, each of a thousand workers would
// first copy and close those of all workers before it.
class StdioSlots {
 public:
  // Reserves the lowest free numbers; nullopt if none are left.
  static std::optional<StdioSlots> Take() {
    StdioSlots slots;
    slots.nothing_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (base::UniqueFd& slot : slots.slots_) {
      slot = base::DuplicateAboveStdio(slots.nothing_.get());
      if (!slot.valid()) return std::nullopt;
    }
    return slots;
  }

  // Duplicates `fd` into the slot of `target` (0, 1 or 2), until Empty(). -1, with errno set, on
  // failure.
  int Fill(int target, int fd) const {
    return ::dup3(fd, slots_[static_cast<std::size_t>(target)].get(), O_CLOEXEC);
  }

  // Makes the slots refer to /dev/null again.
  void Empty() const {
    for (const base::UniqueFd& slot : slots_) ::dup3(nothing_.get(), slot.get(), O_CLOEXEC);
  }

 private:
  StdioSlots() = default;

  base::UniqueFd nothing_;
  std::array<base::UniqueFd, 3> slots_;
};

struct SpawnRequest {
  // As in WorkerSpec.
  std::vector<std::string> argv;
  std::shared_ptr<const std::vector<std::string>> common_env;
  std::vector<std::string> env;
  // Become the process's descriptors 0, 1 and 2. Borrowed for the call.
  int stdin_fd = STDIN_FILENO;
  int stdout_fd = STDOUT_FILENO;
  int stderr_fd = STDERR_FILENO;
  // Become 3, 4, and so on; only a few. Borrowed as well.
  std::vector<int> more_fds;
  // As in WorkerSpec.
  std::vector<int> cpus;
  // The directory of a control group (v2) to join before exec; -1: none. If joining is not
  // permitted, the process runs anyway.
  int join_fd = -1;
  // Sent to the process when the calling thread exits.
  int death_signal = SIGKILL;
  // Empty slots, for callers with many descriptors; null: none.
  const StdioSlots* slots = nullptr;
};

struct Spawned {
  pid_t pid = 0;
  // Readable once the process has exited.
  base::UniqueFd pidfd;
};

// Starts the program and returns after exec (about 1 ms). The process leads a session and process
// group, whose id is its pid, and gets `death_signal` when the calling thread exits: call this on
// the main thread only. It has descriptors 0, 1, 2, those of `more_fds` and no others, default
// signal dispositions (except that nohup's ignored SIGHUP stays ignored), the caller's signal mask,
// and our resource limits, except as in descriptors.h.
//
// On error nothing is left behind. ResourceExhausted: the system cannot create a process now, but
// may later. NotFound and PermissionDenied are about the program, with ExecError's sentence.
absl::StatusOr<Spawned> Spawn(const SpawnRequest& request);

// Finds the program for argv[0], and explains why one cannot be run.

// The file that execvp would run for `name` with this PATH (nullptr: unset). A name with a slash is
// returned unchecked: exec itself reports what is wrong with it. NotFound if PATH has no such
// program, PermissionDenied if it is not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name, const char* path);

// Explains why execve(program) failed with `error`: "./train: No such file or directory",
// "./data.txt: Permission denied (not executable)". Inspects the file to tell causes with the same
// errno apart. NotFound for ENOENT, PermissionDenied for EACCES, FailedPrecondition otherwise.
absl::Status ExecError(const std::string& program, int error);

}  // namespace muster::worker
