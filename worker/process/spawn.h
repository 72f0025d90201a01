// Starts a process: a child as with vfork, a clean slate, exec.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "worker/process/stdio_slots.h"

namespace muster::worker {

struct SpawnRequest {
  // As in WorkerSpec.
  std::vector<std::string> argv;
  std::shared_ptr<const std::vector<std::string>> common_env;
  std::vector<std::string> env;
  // What the process gets as its descriptors 0, 1 and 2. Borrowed for the call.
  int stdin_fd = STDIN_FILENO;
  int stdout_fd = STDOUT_FILENO;
  int stderr_fd = STDERR_FILENO;
  // And as 3, 4, ..., a few of them. Borrowed as well.
  std::vector<int> more_fds;
  // As in WorkerSpec.
  std::vector<int> cpus;
  // The directory of a control group (v2) to be in before exec; -1: none. A process that is not
  // allowed in it runs all the same.
  int join_fd = -1;
  // What it gets when the calling thread ends.
  int death_signal = SIGKILL;
  // Empty slots, for callers that have many descriptors; null: none.
  const StdioSlots* slots = nullptr;
};

struct Spawned {
  pid_t pid = 0;
  // Readable when the process has ended.
  base::UniqueFd pidfd;
};

// Starts the program and returns when it runs, that is after exec (about 1 ms). It leads a session
// and process group of its own, whose id is its pid, and gets `death_signal` when the calling
// thread ends: call this from the main thread only. It has descriptors 0, 1, 2, those of `more_fds`
// and no others, default signal dispositions (except that a SIGHUP ignored by nohup remains
// ignored), the signal mask of the caller, and our resource limits, except for what
// descriptor_limit.h says.
//
// On error nothing is left behind. ResourceExhausted means that the system cannot create a process
// just now; it may be tried again later. NotFound and PermissionDenied are about the program
// itself, in a sentence from ExecError.
absl::StatusOr<Spawned> Spawn(const SpawnRequest& request);

}  // namespace muster::worker
