#include "worker/tree/orphan_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/companion.h"
#include "base/failure.h"
#include "worker/process/close_range.h"
#include "worker/tree/dead_mans_switch.h"
#include "worker/tree/orphan_hunt.h"

namespace muster::worker {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr pid_t kNoGroup = 0;

struct GuardMemory {
  explicit GuardMemory(std::size_t room) : capacity(room) {
    for (std::size_t i = 0; i < capacity; ++i) new (&groups[i]) std::atomic<pid_t>(kNoGroup);
  }
  static std::size_t SizeFor(std::size_t capacity) {
    return sizeof(GuardMemory) + capacity * sizeof(std::atomic<pid_t>);
  }

  // On CLOCK_MONOTONIC, in nanoseconds.
  std::atomic<std::int64_t> deadline_ns{kNever};
  // The agent has written to the pipe, and the guard has not read it. One byte is enough, so that
  // they never fill the pipe of a guard that somebody has stopped.
  std::atomic<bool> look_is_due{false};
  std::atomic<bool> struck{false};
  // Where the death notice goes: the place that the number names is complete. The agent writes to
  // the other one and then changes the number; when it dies in between, that one never counts.
  ServerAddress servers[2];
  std::atomic<unsigned> server{0};
  const std::size_t capacity;
  // What is watched, in no order. In as many places as there is room for.
  std::atomic<pid_t> groups[];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free &&
              std::atomic<unsigned>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<ServerAddress>);

namespace {

constexpr std::chrono::seconds kHuntLimit(30);
constexpr int kAgentDescriptor = 1;
// Whatever kills it at once each time must not keep us starting it.
constexpr int kMostDeaths = 10;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// What the guard process works with: made before the fork, as there is no allocating after it.
struct GuardPlan {
  pid_t agent;
  std::string mark;
  std::string cgroup;
  std::string cgroup_kill;
  std::string file;
  std::string directory;     // that holds it
  std::string death_notice;  // empty: none
  GuardMemory* memory;
};

// steady_clock's, in a way that is sure to be async-signal-safe.
std::int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

// Calls visit(group) for each that is watched, until it returns false; false in that case.
template <typename Visit>
bool ForEachGroup(const GuardPlan& plan, Visit visit) {
  for (std::size_t i = 0; i < plan.memory->capacity; ++i) {
    const pid_t group = plan.memory->groups[i];
    if (group != kNoGroup && !visit(group)) return false;
  }
  return true;
}

// False when the agent's end of the pipe is closed.
bool TakeLook(const GuardPlan& plan) {
  char look;
  ssize_t size;
  do {
    size = read(STDIN_FILENO, &look, sizeof look);
  } while (size < 0 && errno == EINTR);
  if (size != sizeof look) return false;
  plan.memory->look_is_due = false;
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
  ForEachGroup(plan, [](pid_t group) {
    kill(-group, SIGKILL);
    return true;
  });
}

// True if it is certain that nobody with the mark is left.
bool HuntOrphans(const GuardPlan& plan) {
  return !plan.mark.empty() && KillOrphans(plan.mark.c_str(), kHuntLimit);
}

// Waits for a leader, all of whose threads must have come to their end: one that waits for a disk
// or a device dies when that answers. False when it does not.
bool AwaitEnd(pid_t leader, std::int64_t end) {
  pollfd ended = {static_cast<int>(syscall(SYS_pidfd_open, leader, 0)), POLLIN, 0};
  if (ended.fd < 0) return errno == ESRCH;
  int ready;
  do {
    const std::int64_t left = std::max<std::int64_t>(end - NowNs(), 0);
    const timespec wait{left / kNsPerSecond, left % kNsPerSecond};
    ready = ppoll(&ended, 1, &wait, nullptr);
  } while (ready < 0 && errno == EINTR);
  close(ended.fd);
  return ready == 1;
}

bool AwaitLeadersEnd(const GuardPlan& plan) {
  const std::int64_t end = NowNs() + std::chrono::nanoseconds(kHuntLimit).count();
  return ForEachGroup(plan, [end](pid_t leader) { return AwaitEnd(leader, end); });
}

void Strike(const GuardPlan& plan) {
  // Before the first can be seen dead.
  plan.memory->struck = true;
  KillGroups(plan);
  // The agent adopts orphans, so they are children of our parent, as they are when it is dead.
  HuntOrphans(plan);
}

std::optional<DeadMansSwitch::TimePoint> DeadlineOf(const GuardPlan& plan) {
  const std::int64_t deadline = plan.memory->deadline_ns;
  if (deadline == kNever) return std::nullopt;
  return DeadMansSwitch::TimePoint(std::chrono::nanoseconds(deadline));
}

// Until then, or for ever, or until the agent has something to say.
DeadMansSwitch::Event Sleep(const GuardPlan& plan, std::optional<DeadMansSwitch::TimePoint> until) {
  timespec wait{};
  if (until.has_value()) {
    const std::int64_t end = std::chrono::nanoseconds(until->time_since_epoch()).count();
    const std::int64_t left = std::max<std::int64_t>(end - NowNs(), 0);
    wait = {left / kNsPerSecond, left % kNsPerSecond};
  }
  pollfd pipe = {STDIN_FILENO, POLLIN, 0};
  const int ready = ppoll(&pipe, 1, until.has_value() ? &wait : nullptr, nullptr);
  if (ready <= 0) return DeadMansSwitch::Event::kNothing;
  return TakeLook(plan) ? DeadMansSwitch::Event::kLook : DeadMansSwitch::Event::kAgentGone;
}

// Returns when the agent's end of the pipe is closed.
void GuardAgent(const GuardPlan& plan) {
  DeadMansSwitch dead_mans_switch;
  auto event = DeadMansSwitch::Event::kNothing;
  for (;;) {
    // The clock first: a deadline that is found passed had not been moved by then.
    const DeadMansSwitch::TimePoint now{std::chrono::nanoseconds(NowNs())};
    const DeadMansSwitch::Step step = dead_mans_switch.Next(event, now, DeadlineOf(plan));
    event = DeadMansSwitch::Event::kNothing;
    switch (step.kind) {
      case DeadMansSwitch::Step::kSleep:
        event = Sleep(plan, step.until);
        break;
      case DeadMansSwitch::Step::kStrike:
        Strike(plan);
        break;
      case DeadMansSwitch::Step::kKillLate:
        KillGroups(plan);
        break;
      case DeadMansSwitch::Step::kStandIn:
        return;
    }
  }
}

// Nobody writes to the memory any more: the agent's end of the pipe is closed when none of its
// threads can run again.
void TellServer(const GuardPlan& plan) {
  if (plan.death_notice.empty()) return;
  const GuardMemory& memory = *plan.memory;
  SendDeathNotice(memory.servers[memory.server.load(std::memory_order_acquire)], plan.death_notice);
}

void RemoveCgroup(const GuardPlan& plan) {
  if (plan.cgroup.empty()) return;
  // It goes when the last of the killed has gone.
  constexpr timespec kPause{0, 10'000'000};
  for (int i = 0; i < 500 && !RemoveCgroupTree(plan.cgroup.c_str()); ++i)
    nanosleep(&kPause, nullptr);
}

[[noreturn]] void GuardMain(int pipe, const GuardPlan& plan) {
  // Nothing of the agent's is held open: not its terminal, and not the pipe's other end, which
  // would never come to an end then.
  dup2(pipe, STDIN_FILENO);
  CloseFrom(kAgentDescriptor);
  // This gets the lowest number that is free. When the agent has died already the number means
  // nothing, or another process; then there is nothing to wait for.
  syscall(SYS_pidfd_open, plan.agent, 0);
  if (getppid() != plan.agent) close(kAgentDescriptor);

  GuardAgent(plan);
  KillGroups(plan);
  AwaitAgentsEnd();
  if (!plan.file.empty()) {
    unlink(plan.file.c_str());
    rmdir(plan.directory.c_str());
  }
  if (HuntOrphans(plan) && AwaitLeadersEnd(plan)) TellServer(plan);
  RemoveCgroup(plan);
  _exit(0);
}

}  // namespace

absl::StatusOr<OrphanGuard> OrphanGuard::Start(const OrphanGuardOptions& options) {
  void* const memory = mmap(nullptr, GuardMemory::SizeFor(options.capacity), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return base::SystemFailure(absl::StatusCode::kUnavailable, "mmap");
  }
  OrphanGuard guard(options, SharedMemory(new (memory) GuardMemory(options.capacity)));
  if (options.death_notice) guard.memory_->servers[0] = options.death_notice->to;
  const absl::Status status = guard.Launch();
  if (!status.ok()) return status;
  return guard;
}

absl::Status OrphanGuard::Launch() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return base::SystemFailure(absl::StatusCode::kUnavailable, "make a pipe");
  }
  base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  // A guard that somebody has stopped must not stop us.
  fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
  memory_->look_is_due = false;
  const GuardPlan plan{.agent = getpid(),
                       .mark = options_.mark,
                       .cgroup = options_.cgroup,
                       .cgroup_kill = options_.cgroup + "/cgroup.kill",
                       .file = options_.file,
                       .directory = options_.file.substr(0, options_.file.rfind('/')),
                       .death_notice = options_.death_notice ? options_.death_notice->text : "",
                       .memory = memory_.get()};

  const absl::StatusOr<pid_t> pid =
      base::StartCompanion("orphan-guard", [&] { GuardMain(read_end.get(), plan); });
  if (!pid.ok()) return pid.status();
  pid_ = *pid;
  pipe_ = std::move(write_end);
  return absl::OkStatus();
}

absl::Status OrphanGuard::StartAgain() {
  base::Reap(std::exchange(pid_, -1));
  if (++deaths_ >= kMostDeaths) {
    return absl::UnavailableError(absl::StrCat("it has died ", deaths_, " times"));
  }
  return Launch();
}

void OrphanGuard::Unmap::operator()(GuardMemory* shared) const {
  munmap(shared, GuardMemory::SizeFor(shared->capacity));
}

OrphanGuard::OrphanGuard(OrphanGuard&& other) noexcept
    : options_(std::move(other.options_)),
      memory_(std::move(other.memory_)),
      pid_(std::exchange(other.pid_, -1)),
      pipe_(std::move(other.pipe_)),
      deaths_(other.deaths_) {}

OrphanGuard::~OrphanGuard() {
  if (pid_ < 0) return;
  Dismiss();
  base::Reap(pid_);
}

void OrphanGuard::Dismiss() {
  // Not by the end of the pipe: a guard that somebody has stopped would keep us waiting.
  if (pid_ > 0) kill(pid_, SIGKILL);
}

void OrphanGuard::Watch(pid_t group) {
  if (!Replace(kNoGroup, group)) return;
  // It struck before the group was there; or it will find it.
  if (memory_->struck) Look();
}

void OrphanGuard::Forget(pid_t group) {
  Replace(group, kNoGroup);
}

bool OrphanGuard::Replace(pid_t before, pid_t after) {
  for (std::size_t i = 0; i < memory_->capacity; ++i) {
    if (memory_->groups[i].load(std::memory_order_relaxed) != before) continue;
    memory_->groups[i] = after;
    return true;
  }
  return false;
}

void OrphanGuard::SetDeadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
  const std::int64_t after = deadline.has_value()
                                 ? std::chrono::nanoseconds(deadline->time_since_epoch()).count()
                                 : kNever;
  const std::int64_t before = memory_->deadline_ns.exchange(after);
  // The guard wakes by itself at `before`, unless it has done so already. The clock is read after
  // the exchange: a guard that has found `before` passed did so earlier.
  const bool guard_sleeps_too_long = after < before || before <= NowNs();
  if (guard_sleeps_too_long) Look();
}

void OrphanGuard::MoveDeathNotice(const ServerAddress& to) {
  const unsigned other = 1 - memory_->server.load(std::memory_order_relaxed);
  memory_->servers[other] = to;
  memory_->server.store(other, std::memory_order_release);
}

bool OrphanGuard::has_struck() const {
  return memory_->struck;
}

void OrphanGuard::Look() {
  if (memory_->look_is_due.exchange(true)) return;
  constexpr char kLook = 0;
  // If the guard is gone there is nobody to tell. SIGPIPE is ignored (Console).
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), &kLook, sizeof kLook);
}

}  // namespace muster::worker
