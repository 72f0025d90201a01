#include "worker/orphan_guard.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::worker {
namespace {

// The pipe carries pid_t numbers: a group to watch, or its negative to forget it. They are far
// smaller than PIPE_BUF, so each arrives whole.
[[noreturn]] void GuardMain(int pipe, pid_t* groups, std::size_t capacity) {
  setsid();
  prctl(PR_SET_NAME, "muster-guard");
  // Nothing of the agent's is held open: not its terminal, and not the pipe's other end, which
  // would never come to an end then.
  dup2(pipe, STDIN_FILENO);
  syscall(SYS_close_range, 1, UINT_MAX, 0);

  std::size_t count = 0;
  for (;;) {
    pid_t message = 0;
    const ssize_t size = read(STDIN_FILENO, &message, sizeof message);
    if (size < 0 && errno == EINTR) continue;
    if (size != static_cast<ssize_t>(sizeof message)) break;
    if (message > 0) {
      if (count < capacity) groups[count++] = message;
    } else {
      pid_t* const end = std::remove(groups, groups + count, -message);
      count = static_cast<std::size_t>(end - groups);
    }
  }
  for (std::size_t i = 0; i < count; ++i) kill(-groups[i], SIGKILL);
  _exit(0);
}

// What a signal to the whole of the agent's session means is the agent's to decide.
void IgnoreSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) std::signal(signal, SIG_IGN);
  }
}

}  // namespace

absl::StatusOr<OrphanGuard> OrphanGuard::Start(std::size_t capacity) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("make a pipe: ", std::strerror(errno)));
  }
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // A guard that somebody has stopped must not stop us.
  fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
  // Made here, as there is no allocating after fork.
  std::vector<pid_t> groups(capacity);

  // Until they are ignored in the child no signal may find the agent's handlers there.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    IgnoreSignals();
    GuardMain(read_end.get(), groups.data(), groups.size());
  }
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(error)));
  }
  return OrphanGuard(pid, std::move(write_end));
}

OrphanGuard::OrphanGuard(OrphanGuard&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

OrphanGuard::~OrphanGuard() {
  if (pid_ < 0) return;
  // Not by the end of the pipe: a guard that somebody has stopped would keep us waiting.
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void OrphanGuard::Watch(pid_t group) {
  // If the guard is gone there is nobody to tell. SIGPIPE is ignored (Console).
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), &group, sizeof group);
}

void OrphanGuard::Forget(pid_t group) {
  Watch(-group);
}

}  // namespace muster::worker
