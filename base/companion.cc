#include "base/companion.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/failure.h"

namespace muster::base {

absl::StatusOr<pid_t> StartCompanion(const char* name, absl::FunctionRef<void()> main) {
  // In the child no signal may find this process's handlers. It keeps all of them blocked: one
  // call, where ignoring them takes one for each.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    prctl(PR_SET_NAME, name);
    main();
    _exit(1);
  }
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return SystemFailure(absl::StatusCode::kUnavailable, "fork", "", error);
  return pid;
}

void Reap(pid_t child) {
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace muster::base
