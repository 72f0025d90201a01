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

#include "base/failure.h"
#include "base/program.h"
#include "worker/process/descriptors.h"
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

  // CLOCK_MONOTONIC in nanoseconds.
  std::atomic<std::int64_t> deadline_ns{kNever};
  // The agent has written to the pipe and the guard has not read it. One byte is enough, so the
  // pipe of a suspended guard never fills up.
  std::atomic<bool> look_is_due{false};
  std::atomic<bool> struck{false};
  // The death notice's server is servers[server]. The agent writes the other element and then
  // switches the index, so that dying in between leaves a complete address.
  ServerAddress servers[2];
  std::atomic<unsigned> server{0};
  const std::size_t capacity;
  // The watched groups, in no order.
  std::atomic<pid_t> groups[];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free &&
              std::atomic<unsigned>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<ServerAddress>);

namespace {

constexpr std::chrono::seconds kHuntLimit(30);
constexpr int kAgentDescriptor = 1;
// Stop restarting a guard that something keeps killing.
constexpr int kMostDeaths = 10;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// The guard process's data: built before the fork, as it must not allocate afterwards.
struct GuardPlan {
  pid_t agent;
  std::string mark;
  std::string cgroup;
  std::string cgroup_kill;
  std::string file;
  std::string directory;     // the file's directory
  std::string death_notice;  // empty: none
  GuardMemory* memory;
};

// steady_clock's time by a call that is known to be async-signal-safe.
std::int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

// What is left until then; nothing once it is over.
timespec TimeUntil(std::int64_t end_ns) {
  const std::int64_t left = std::max<std::int64_t>(end_ns - NowNs(), 0);
  return {left / kNsPerSecond, left % kNsPerSecond};
}

// Calls visit(group) for each watched group until it returns false; then returns false.
template <typename Visit>
bool ForEachGroup(const GuardPlan& plan, Visit visit) {
  for (std::size_t i = 0; i < plan.memory->capacity; ++i) {
    const pid_t group = plan.memory->groups[i];
    if (group != kNoGroup && !visit(group)) return false;
  }
  return true;
}

// False once the agent's end of the pipe is closed.
bool TakeLook(const GuardPlan& plan) {
  char look;
  if (TEMP_FAILURE_RETRY(read(STDIN_FILENO, &look, sizeof look)) != sizeof look) return false;
  plan.memory->look_is_due = false;
  return true;
}

// A dying process closes its descriptors some time before its children are orphaned.
void AwaitAgentsEnd() {
  pollfd ended = {kAgentDescriptor, POLLIN, 0};
  TEMP_FAILURE_RETRY(poll(&ended, 1, -1));
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

// True if certainly no process with the mark is left.
bool HuntOrphans(const GuardPlan& plan) {
  return !plan.mark.empty() && KillOrphans(plan.mark.c_str(), kHuntLimit);
}

// Waits until all threads of a leader have exited: one in uninterruptible sleep dies only when its
// disk or device answers. False on timeout.
bool AwaitEnd(pid_t leader, std::int64_t end) {
  pollfd ended = {static_cast<int>(syscall(SYS_pidfd_open, leader, 0)), POLLIN, 0};
  if (ended.fd < 0) return errno == ESRCH;
  int ready;
  do {
    const timespec wait = TimeUntil(end);
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
  // Set before any worker can be seen dead.
  plan.memory->struck = true;
  KillGroups(plan);
  // The agent adopts orphans, so they have our parent, as they also do after its death.
  HuntOrphans(plan);
}

std::optional<DeadMansSwitch::TimePoint> DeadlineOf(const GuardPlan& plan) {
  const std::int64_t deadline = plan.memory->deadline_ns;
  if (deadline == kNever) return std::nullopt;
  return DeadMansSwitch::TimePoint(std::chrono::nanoseconds(deadline));
}

// Sleeps until `until` (nullopt: no limit) or until the agent writes to the pipe.
DeadMansSwitch::Event Sleep(const GuardPlan& plan, std::optional<DeadMansSwitch::TimePoint> until) {
  timespec wait{};
  if (until.has_value()) {
    wait = TimeUntil(std::chrono::nanoseconds(until->time_since_epoch()).count());
  }
  pollfd pipe = {STDIN_FILENO, POLLIN, 0};
  const int ready = ppoll(&pipe, 1, until.has_value() ? &wait : nullptr, nullptr);
  if (ready <= 0) return DeadMansSwitch::Event::kNothing;
  return TakeLook(plan) ? DeadMansSwitch::Event::kLook : DeadMansSwitch::Event::kAgentGone;
}

// Returns once the agent's end of the pipe is closed.
void GuardAgent(const GuardPlan& plan) {
  DeadMansSwitch dead_mans_switch;
  auto event = DeadMansSwitch::Event::kNothing;
  for (;;) {
    // Read the clock first: a deadline that is found passed was then not moved in time.
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

// The agent can no longer write to the memory: its end of the pipe closes only when none of its
// threads runs.
void TellServer(const GuardPlan& plan) {
  if (plan.death_notice.empty()) return;
  const GuardMemory& memory = *plan.memory;
  SendDeathNotice(memory.servers[memory.server.load(std::memory_order_acquire)], plan.death_notice);
}

void RemoveCgroup(const GuardPlan& plan) {
  if (plan.cgroup.empty()) return;
  // rmdir works once the last killed process is gone.
  constexpr timespec kPause{0, 10'000'000};
  for (int i = 0; i < 500 && !RemoveCgroupTree(plan.cgroup.c_str()); ++i)
    nanosleep(&kPause, nullptr);
}

[[noreturn]] void GuardMain(int pipe, const GuardPlan& plan) {
  // Keep none of the agent's descriptors: not its terminal, and not the write end of the pipe,
  // which would never report its end.
  dup2(pipe, STDIN_FILENO);
  CloseFrom(kAgentDescriptor);
  // Gets the lowest free number, kAgentDescriptor. If the agent has died already, its pid may be
  // another process's, and there is nothing to wait for.
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
  // A suspended guard must not block us.
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
  // SIGKILL rather than closing the pipe: a suspended guard would not exit.
  if (pid_ > 0) kill(pid_, SIGKILL);
}

void OrphanGuard::Watch(pid_t group) {
  if (!Replace(kNoGroup, group)) return;
  // If it struck before the group was added, it must look; otherwise it will find the group.
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
  // The guard wakes by itself at `before`, unless it already has. The clock is read after the
  // exchange, so a guard that found `before` passed did so earlier.
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
  // Fails harmlessly if the guard is gone. SIGPIPE is ignored (Console).
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), &kLook, sizeof kLook);
}

DeadMansSwitch::Step DeadMansSwitch::Next(Event event, TimePoint now,
                                          std::optional<TimePoint> deadline) {
  if (event == Event::kAgentGone) return {Step::kStandIn, std::nullopt};
  // Finds a deadline that was moved in time here and sleeps on, so moving it needs no wake-up.
  if (!deadline.has_value() || now < *deadline) return {Step::kSleep, deadline};
  if (struck_for_ != deadline) {
    struck_for_ = deadline;
    return {Step::kStrike, std::nullopt};
  }
  return {event == Event::kLook ? Step::kKillLate : Step::kSleep, std::nullopt};
}

}  // namespace muster::worker
