#include "worker/orphan_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/orphan_hunt.h"

namespace muster::worker {
namespace {

constexpr std::chrono::seconds kHuntLimit(30);
constexpr int kAgentDescriptor = 1;

// What the guard process works with: made before the fork, as there is no allocating after it.
struct GuardPlan {
  pid_t agent;
  std::vector<pid_t> groups;
  std::size_t count = 0;
  std::string mark;
  std::string cgroup;
  std::string cgroup_kill;
};

// The pipe carries pid_t numbers: a group to watch, or its negative to forget it. They are far
// smaller than PIPE_BUF, so each arrives whole. Returns when the agent's end is closed.
void FollowGroups(GuardPlan& plan) {
  for (;;) {
    pid_t message = 0;
    const ssize_t size = read(STDIN_FILENO, &message, sizeof message);
    if (size < 0 && errno == EINTR) continue;
    if (size != static_cast<ssize_t>(sizeof message)) return;
    if (message > 0) {
      if (plan.count < plan.groups.size()) plan.groups[plan.count++] = message;
    } else {
      pid_t* const begin = plan.groups.data();
      pid_t* const end = std::remove(begin, begin + plan.count, -message);
      plan.count = static_cast<std::size_t>(end - begin);
    }
  }
}

// A dying process closes its files some time before its children are orphaned.
void AwaitAgentsEnd() {
  pollfd ended = {kAgentDescriptor, POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
}

void KillCgroup(const GuardPlan& plan) {
  if (plan.cgroup.empty()) return;
  const int file = open(plan.cgroup_kill.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "1", 1);
  close(file);
}

void RemoveCgroup(const GuardPlan& plan) {
  if (plan.cgroup.empty()) return;
  // It goes when the last of the killed has gone.
  constexpr timespec kPause{0, 10'000'000};
  for (int i = 0; i < 500 && !RemoveCgroupTree(plan.cgroup.c_str()); ++i)
    nanosleep(&kPause, nullptr);
}

[[noreturn]] void GuardMain(int pipe, GuardPlan& plan) {
  setsid();
  prctl(PR_SET_NAME, "muster-guard");
  // Nothing of the agent's is held open: not its terminal, and not the pipe's other end, which
  // would never come to an end then.
  dup2(pipe, STDIN_FILENO);
  syscall(SYS_close_range, kAgentDescriptor, UINT_MAX, 0);
  // This gets the lowest number that is free. When the agent has died already the number means
  // nothing, or another process; then there is nothing to wait for.
  syscall(SYS_pidfd_open, plan.agent, 0);
  if (getppid() != plan.agent) close(kAgentDescriptor);

  FollowGroups(plan);
  KillCgroup(plan);
  for (std::size_t i = 0; i < plan.count; ++i) kill(-plan.groups[i], SIGKILL);
  AwaitAgentsEnd();
  if (!plan.mark.empty()) KillOrphans(plan.mark.c_str(), kHuntLimit);
  RemoveCgroup(plan);
  _exit(0);
}

// What a signal to the whole of the agent's session means is the agent's to decide.
void IgnoreSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) std::signal(signal, SIG_IGN);
  }
}

}  // namespace

absl::StatusOr<OrphanGuard> OrphanGuard::Start(const OrphanGuardOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("make a pipe: ", std::strerror(errno)));
  }
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // A guard that somebody has stopped must not stop us.
  fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
  GuardPlan plan{.agent = getpid(),
                 .groups = std::vector<pid_t>(options.capacity),
                 .mark = options.mark,
                 .cgroup = options.cgroup,
                 .cgroup_kill = options.cgroup + "/cgroup.kill"};

  // Until they are ignored in the child no signal may find the agent's handlers there.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    IgnoreSignals();
    GuardMain(read_end.get(), plan);
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
