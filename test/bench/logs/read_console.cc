// read_console PROGRAM [ARGUMENT...]: runs a launcher with its stdout in a pipe, reads it to its
// end, and prints a JSON object: which numbered lines arrived, when the last one did
// (CLOCK_MONOTONIC), and the CPU time since the first line of the launcher and all processes that
// it has waited for. Start-up is left out, because Python takes seconds to import torch. The
// launcher's stderr is not redirected.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "test/bench/logs/numbered_line.h"

namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// What the process, without its children, has taken so far.
double CpuSecondsOf(pid_t pid) {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

pid_t Start(char** argv, int console) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, console, STDOUT_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv, environ);
  if (error == 0) return pid;
  std::fprintf(stderr, "read_console: start %s: %s\n", argv[0], std::strerror(error));
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: read_console PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  int console[2];
  if (pipe2(console, O_CLOEXEC) != 0) return 1;
  const pid_t pid = Start(argv + 1, console[1]);
  if (pid < 0) return 1;
  close(console[1]);

  muster::bench::LineCounter counter;
  double start_cpu = 0;
  std::chrono::duration<double> last{0};
  std::vector<char> buffer(256 * 1024);
  for (;;) {
    const ssize_t count = read(console[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const std::uint64_t before = counter.lines();
    counter.Feed({buffer.data(), static_cast<std::size_t>(count)});
    if (counter.lines() == before) continue;
    if (before == 0) start_cpu = CpuSecondsOf(pid);
    last = std::chrono::steady_clock::now().time_since_epoch();
  }
  int status = 0;
  rusage usage = {};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::printf(
      "{\"lines\": %llu, \"others\": %llu, \"last_s\": %.9f, \"cpu_s\": %.6f, \"exit_code\": %d}\n",
      static_cast<unsigned long long>(counter.lines()),
      static_cast<unsigned long long>(counter.others()), last.count(),
      Seconds(usage.ru_utime) + Seconds(usage.ru_stime) - start_cpu, exit_code);
  return 0;
}
