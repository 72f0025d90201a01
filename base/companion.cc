#include "base/companion.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "absl/types/span.h"
#include "base/failure.h"

namespace muster::base {
namespace {

// The command line as the kernel shows it: the arguments one behind the other, each with its zero.
absl::Span<char> g_command_line;

// In the child.
void TakeName(const char* name) {
  prctl(PR_SET_NAME, name);
  if (g_command_line.empty()) return;
  std::memset(g_command_line.data(), 0, g_command_line.size());
  // The last zero stays: without it the kernel takes the environment for the rest of the line.
  std::memcpy(g_command_line.data(), name, std::min(std::strlen(name), g_command_line.size() - 1));
}

}  // namespace

void LendCommandLine(int argc, char** argv) {
  if (argc < 1) return;
  char* const end = argv[argc - 1] + std::strlen(argv[argc - 1]) + 1;
  g_command_line = absl::MakeSpan(argv[0], static_cast<std::size_t>(end - argv[0]));
}

absl::StatusOr<pid_t> StartCompanion(const char* name, absl::FunctionRef<void()> main) {
  // In the child no signal may find this process's handlers. It keeps all of them blocked: one
  // call, where ignoring them takes one for each.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    TakeName(name);
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
