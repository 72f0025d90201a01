// time_command SECONDS PROGRAM [ARGUMENT...]: prints the cost of one run of a command, from before
// it is started until it has been waited for, as a JSON object. The command's output goes to
// stderr. If it has not ended after SECONDS, it is killed, and the output is null.
//
// Small and in C++, because the parent affects the result: a child's peak memory starts at that of
// the process from which it was forked, and Python takes milliseconds to fork.
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// A process group of its own, so that all of it can be killed.
int Start(char** argv, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  return posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
}

// False when the time is over.
bool AwaitEnd(pid_t pid, int seconds) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd ended = {pidfd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&ended, 1, seconds * 1000);
  } while (ready < 0 && errno == EINTR);
  close(pidfd);
  return ready > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc < 3 ? 0 : std::atoi(argv[1]);
  if (seconds < 1) {
    std::fprintf(stderr, "usage: time_command SECONDS PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (const int error = Start(argv + 2, &pid)) {
    std::fprintf(stderr, "time_command: start %s: %s\n", argv[2], std::strerror(error));
    return 1;
  }
  const bool in_time = AwaitEnd(pid, seconds);
  if (!in_time) kill(-pid, SIGKILL);
  int status = 0;
  rusage usage = {};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  if (!in_time) {
    std::printf("null\n");
    return 0;
  }
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::printf(
      "{\"start_s\": %.9f, \"wall_s\": %.9f, \"cpu_s\": %.6f, \"peak_rss_kib\": %ld, "
      "\"exit_code\": %d}\n",
      std::chrono::duration<double>(start.time_since_epoch()).count(), wall.count(),
      Seconds(usage.ru_utime) + Seconds(usage.ru_stime), usage.ru_maxrss, exit_code);
  return 0;
}
