#include "worker/orphan_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/orphan_hunt.h"

namespace muster::worker {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct DeadMansSwitch {
  // On CLOCK_MONOTONIC, in nanoseconds.
  std::atomic<std::int64_t> deadline_ns{kNever};
  // There is a kLookAtSwitch in the pipe that the guard has not read. One is enough, so that they
  // never fill the pipe of a guard that somebody has stopped.
  std::atomic<bool> look_is_due{false};
  std::atomic<bool> struck{false};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

namespace {

constexpr std::chrono::seconds kHuntLimit(30);
constexpr int kAgentDescriptor = 1;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// What the pipe carries beside groups.
constexpr pid_t kLookAtSwitch = 0;

// What the guard process works with: made before the fork, as there is no allocating after it.
struct GuardPlan {
  struct Watched {
    pid_t group;
    int leader;  // its pidfd; negative: there was none to be had
  };

  pid_t agent;
  std::vector<Watched> groups;
  std::size_t count = 0;
  std::string mark;
  std::string cgroup;
  std::string cgroup_kill;
  std::optional<DeathNotice> death_notice;
  DeadMansSwitch* dead_mans_switch;
};

// steady_clock's, in a way that is sure to be async-signal-safe.
std::int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

void Watch(GuardPlan& plan, pid_t group) {
  if (plan.count == plan.groups.size()) return;
  // Whoever its number means is still the leader: the agent has not waited for it.
  const int leader = static_cast<int>(syscall(SYS_pidfd_open, group, 0));
  plan.groups[plan.count++] = {group, leader};
}

void Forget(GuardPlan& plan, pid_t group) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plan.count; ++i) {
    const GuardPlan::Watched& watched = plan.groups[i];
    if (watched.group != group) {
      plan.groups[kept++] = watched;
    } else if (watched.leader >= 0) {
      close(watched.leader);
    }
  }
  plan.count = kept;
}

// The pipe carries pid_t numbers: a group to watch, its negative to forget it, or kLookAtSwitch.
// They are far smaller than PIPE_BUF, so each arrives whole, also from an agent that was stopped
// meanwhile. False when the agent's end is closed.
bool TakeMessage(GuardPlan& plan, pid_t* message) {
  ssize_t size;
  do {
    size = read(STDIN_FILENO, message, sizeof *message);
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof *message)) return false;
  if (*message > 0) {
    Watch(plan, *message);
  } else if (*message < 0) {
    Forget(plan, -*message);
  }
  // Whatever it was: the switch is looked at after it.
  plan.dead_mans_switch->look_is_due = false;
  return true;
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

void KillGroups(const GuardPlan& plan) {
  KillCgroup(plan);
  for (std::size_t i = 0; i < plan.count; ++i) kill(-plan.groups[i].group, SIGKILL);
}

// True if it is certain that nobody with the mark is left.
bool HuntOrphans(const GuardPlan& plan) {
  return !plan.mark.empty() && KillOrphans(plan.mark.c_str(), kHuntLimit);
}

// Waits for the leaders, all of whose threads must have come to their end: one that waits for a
// disk or a device dies when that answers. False when some do not.
bool AwaitLeadersEnd(const GuardPlan& plan) {
  const std::int64_t end = NowNs() + std::chrono::nanoseconds(kHuntLimit).count();
  for (std::size_t i = 0; i < plan.count; ++i) {
    pollfd ended = {plan.groups[i].leader, POLLIN, 0};
    if (ended.fd < 0) return false;
    int ready;
    do {
      const std::int64_t left = std::max<std::int64_t>(end - NowNs(), 0);
      const timespec wait{left / kNsPerSecond, left % kNsPerSecond};
      ready = ppoll(&ended, 1, &wait, nullptr);
    } while (ready < 0 && errno == EINTR);
    if (ready != 1) return false;
  }
  return true;
}

void Strike(const GuardPlan& plan) {
  // Before the first can be seen dead.
  plan.dead_mans_switch->struck = true;
  KillGroups(plan);
  // The agent adopts orphans, so they are children of our parent, as they are when it is dead.
  HuntOrphans(plan);
}

// Returns when the agent's end of the pipe is closed.
//
// A deadline is looked at when it comes, and a later one found then is waited for. So nobody needs
// to be told of one that is moved on in time; kLookAtSwitch tells of others.
void GuardAgent(GuardPlan& plan) {
  std::int64_t struck_at = kNever;
  for (;;) {
    const std::int64_t deadline = plan.dead_mans_switch->deadline_ns;
    const std::int64_t left = std::max<std::int64_t>(deadline - NowNs(), 0);
    const bool is_over = left == 0;
    const bool has_struck = is_over && deadline == struck_at;
    const timespec wait{left / kNsPerSecond, left % kNsPerSecond};
    pollfd pipe = {STDIN_FILENO, POLLIN, 0};
    // Also when the deadline has come: a group that was to be forgotten must not be hit.
    const int ready = ppoll(&pipe, 1, deadline == kNever || has_struck ? nullptr : &wait, nullptr);
    if (ready > 0) {
      pid_t message;
      if (!TakeMessage(plan, &message)) return;
      // An agent that woke up in the middle of starting its workers.
      if (has_struck && message > 0) {
        kill(-message, SIGKILL);
        KillCgroup(plan);
      }
    } else if (ready == 0 && is_over) {
      Strike(plan);
      struck_at = deadline;
    }
  }
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

  GuardAgent(plan);
  KillGroups(plan);
  AwaitAgentsEnd();
  const bool all_gone = HuntOrphans(plan) && AwaitLeadersEnd(plan);
  if (all_gone && plan.death_notice) Send(*plan.death_notice);
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
  void* const memory = mmap(nullptr, sizeof(DeadMansSwitch), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::UnavailableError(absl::StrCat("mmap: ", std::strerror(errno)));
  }
  SharedSwitch shared(new (memory) DeadMansSwitch);
  GuardPlan plan{.agent = getpid(),
                 .groups = std::vector<GuardPlan::Watched>(options.capacity),
                 .mark = options.mark,
                 .cgroup = options.cgroup,
                 .cgroup_kill = options.cgroup + "/cgroup.kill",
                 .death_notice = options.death_notice,
                 .dead_mans_switch = shared.get()};

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
  return OrphanGuard(pid, std::move(write_end), std::move(shared));
}

void OrphanGuard::Unmap::operator()(DeadMansSwitch* shared) const {
  munmap(shared, sizeof *shared);
}

OrphanGuard::OrphanGuard(OrphanGuard&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::move(other.pipe_)),
      switch_(std::move(other.switch_)) {}

OrphanGuard::~OrphanGuard() {
  if (pid_ < 0) return;
  // Not by the end of the pipe: a guard that somebody has stopped would keep us waiting.
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void OrphanGuard::Watch(pid_t group) {
  Send(group);
}

void OrphanGuard::Forget(pid_t group) {
  Send(-group);
}

void OrphanGuard::SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
  const std::int64_t after = deadline.has_value()
                                 ? std::chrono::nanoseconds(deadline->time_since_epoch()).count()
                                 : kNever;
  const std::int64_t before = switch_->deadline_ns.exchange(after);
  // The guard wakes by itself at `before`, unless it has done so already. The clock is read after
  // the exchange: a guard that has found `before` passed did so earlier.
  const bool guard_sleeps_too_long = after < before || before <= NowNs();
  if (guard_sleeps_too_long && !switch_->look_is_due.exchange(true)) Send(kLookAtSwitch);
}

bool OrphanGuard::has_struck() const {
  return switch_->struck;
}

void OrphanGuard::Send(pid_t message) {
  // If the guard is gone there is nobody to tell. SIGPIPE is ignored (Console).
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), &message, sizeof message);
}

}  // namespace muster::worker
