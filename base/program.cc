#include "base/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "base/failure.h"
#include "base/unique_fd.h"

namespace muster::base {
namespace {

bool g_stdout_was_closed = false;

}  // namespace

void FillStdio() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (fd == STDOUT_FILENO) g_stdout_was_closed = true;
    // open() returns the lowest free descriptor, which is `fd`: all below are in use by now.
    [[maybe_unused]] const int opened = open("/dev/null", O_RDWR);
  }
}

namespace {

// Runs before static constructors: gRPC creates an eventfd in one, which would become our stdin.
[[gnu::constructor(101)]] void FillStdioFirst() {
  FillStdio();
}

}  // namespace

void SetUpSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM}) {
    std::signal(signal, SIG_DFL);
    sigaddset(&ends, signal);
  }
  sigprocmask(SIG_UNBLOCK, &ends, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
}

namespace {

// <linux/wait.h>; glibc has it since 2.36.
constexpr int kPidfd = 3;

absl::Status Missing(const char* call, int error) {
  return absl::FailedPreconditionError(absl::StrCat(
      "watch processes: ", call, ": ", SystemCause(error),
      "; Muster needs Linux 5.4 or newer, and a container that lets this call through"));
}

}  // namespace

absl::Status CheckKernel() {
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (self.get() < 0) {
    // Running out of descriptors is a different problem, reported elsewhere.
    const int error = errno;
    return error == ENOSYS || error == EPERM ? Missing("pidfd_open", error) : absl::OkStatus();
  }
  siginfo_t info{};
  // This process is not its own child, so a kernel that supports pidfds answers ECHILD.
  if (::waitid(static_cast<idtype_t>(kPidfd), static_cast<id_t>(self.get()), &info,
               WEXITED | WNOHANG) != 0 &&
      errno != ECHILD) {
    return Missing("waitid(P_PIDFD)", errno);
  }
  return absl::OkStatus();
}

namespace {

// The command line as the kernel shows it: all arguments in a row, each with its terminating zero.
absl::Span<char> g_command_line;

// Runs in the child.
void TakeName(const char* name) {
  prctl(PR_SET_NAME, name);
  if (g_command_line.empty()) return;
  std::memset(g_command_line.data(), 0, g_command_line.size());
  // Keep the last zero: without it the kernel continues the command line into the environment.
  std::memcpy(g_command_line.data(), name, std::min(std::strlen(name), g_command_line.size() - 1));
}

}  // namespace

void LendCommandLine(int argc, char** argv) {
  if (argc < 1) return;
  char* const end = argv[argc - 1] + std::strlen(argv[argc - 1]) + 1;
  g_command_line = absl::MakeSpan(argv[0], static_cast<std::size_t>(end - argv[0]));
}

absl::StatusOr<pid_t> StartCompanion(const char* name, absl::FunctionRef<void()> main) {
  // The child must not run this process's signal handlers. Blocking all signals takes one call;
  // ignoring them takes one call each.
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
  TEMP_FAILURE_RETRY(waitpid(child, nullptr, 0));
}

bool PrintOut(const char* command, const std::string& text) {
  errno = EBADF;
  if (!g_stdout_was_closed && std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0) {
    return true;
  }
  std::fprintf(stderr, "%s: write stdout: %s\n", command, SystemCause().c_str());
  return false;
}

}  // namespace muster::base
