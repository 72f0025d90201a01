#include "worker/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include <sanitizer/asan_interface.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"

#include "base/failure.h"
#include "worker/process/descriptors.h"

namespace muster::worker {
namespace {

constexpr int kFirstMore = STDERR_FILENO + 1;

// What the child was doing when it failed.
enum class Step : int { kSession, kDeathSignal, kAffinity, kDescriptors, kExec };

// The step that failed in the child.
struct ChildError {
  Step step = Step::kSession;
  int error = 0;  // 0: no error, exec succeeded
};

// Everything the child needs, and its result. The child runs in our memory until exec, and must not
// allocate.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  int stdio[3];     // each is in its place already, or above 2
  const int* more;  // to become 3, 4, ...; all are above those
  int more_count;
  int join_fd;            // of a control group to join after the start; -1: none
  const cpu_set_t* cpus;  // null: inherit the parent's
  std::size_t cpus_size;
  std::optional<rlim_t> descriptor_limit;
  // The child shares our descriptor table until it unshares it up to highest_fd.
  bool shares_files;
  int highest_fd;
  pid_t parent;
  int death_signal;
  sigset_t mask;
  ChildError failure;
};

constexpr const char* kStepNames[] = {"setsid", "prctl(PR_SET_PDEATHSIG)", "bind to CPUs", "dup2",
                                      "execve"};

[[noreturn]] void FailInChild(ChildPlan& plan, Step step) {
  plan.failure = {step, errno};
  ::_exit(127);
}

void JoinCgroup(int directory) {
  const int procs = ::openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  if (procs < 0) return;
  [[maybe_unused]] const ssize_t joined = ::write(procs, "0", 1);
  ::close(procs);
}

// The kernel's own struct sigaction (rt_sigaction(2), "C library/kernel differences").
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

long KernelSigaction(int signal, const KernelAction* fresh, KernelAction* current) {
  return ::syscall(SYS_rt_sigaction, signal, fresh, current, sizeof fresh->mask);
}

// Resets all signals to default: ignored ones survive exec, and a handled one would run our handler
// until then. All signals are blocked meanwhile. Not by sigaction(): ThreadSanitizer's version
// keeps a table of handlers in the memory that we share, and would lose ours.
void ResetSignalHandlers() {
  const KernelAction fresh = {};
  for (int signal = 1; signal < NSIG; ++signal) {
    KernelAction current = {};
    // Fails for SIGKILL and SIGSTOP.
    if (KernelSigaction(signal, nullptr, &current) != 0 || current.handler == SIG_DFL) continue;
    // nohup: a closing terminal must not end the job.
    if (signal == SIGHUP && current.handler == SIG_IGN) continue;
    KernelSigaction(signal, &fresh, nullptr);
  }
}

// Sets the soft limit.
void SetDescriptorLimit(rlim_t soft) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Runs in the child until exec; async-signal-safe calls only.
int RunChild(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  ResetSignalHandlers();
  // A session, as under torchrun, not just a process group: a background group would be stopped by
  // SIGTTIN when it reads from the terminal (a debugger prompt); without a controlling terminal it
  // may.
  if (::setsid() < 0) FailInChild(plan, Step::kSession);
  if (::prctl(PR_SET_PDEATHSIG, plan.death_signal) != 0) FailInChild(plan, Step::kDeathSignal);
  // If the parent died before the prctl, no signal will come.
  if (::getppid() != plan.parent) ::_exit(127);
  if (plan.join_fd >= 0) JoinCgroup(plan.join_fd);
  if (plan.cpus != nullptr && ::sched_setaffinity(0, plan.cpus_size, plan.cpus) != 0) {
    FailInChild(plan, Step::kAffinity);
  }
  // Unshares the descriptor table, copying only what is needed.
  const auto above = static_cast<unsigned>(plan.highest_fd) + 1;
  if (plan.shares_files && ::close_range(above, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    FailInChild(plan, Step::kDescriptors);
  }
  for (int target = 0; target < 3; ++target) {
    if (plan.stdio[target] == target) continue;
    if (::dup2(plan.stdio[target], target) < 0) FailInChild(plan, Step::kDescriptors);
  }
  for (int i = 0; i < plan.more_count; ++i) {
    if (::dup2(plan.more[i], kFirstMore + i) < 0) FailInChild(plan, Step::kDescriptors);
  }
  // Our own descriptors are close-on-exec; this is for those that libraries opened or that were
  // inherited.
  CloseOnExecFrom(kFirstMore + plan.more_count);
  if (plan.descriptor_limit) SetDescriptorLimit(*plan.descriptor_limit);
  ::sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  ::execve(plan.program, plan.argv, plan.envp);
  FailInChild(plan, Step::kExec);
}

// The child shares our memory while our thread waits for its exec or exit: nothing is copied,
// however large our memory is, and the child can write its result into the plan.
constexpr std::uint64_t kLikeVfork = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;

std::uint64_t Flags(const ChildPlan& plan) {
  return kLikeVfork | (plan.shares_files ? CLONE_FILES : 0);
}

// More than RunChild() needs, even if it is instrumented.
using ChildStack = std::byte[64 * 1024];

// clone3() that creates the child inside the control group plan.join_fd. Moving it there later
// takes some 10 ms, as the kernel waits until every CPU has passed through its scheduler. Returns
// -1 and errno on error. glibc has no such function, and only assembly can return twice on two
// stacks.
pid_t CloneIntoCgroup([[maybe_unused]] ChildPlan& plan, [[maybe_unused]] ChildStack& stack,
                      [[maybe_unused]] int* pidfd) {
#ifdef __x86_64__
  clone_args args = {};
  args.flags = Flags(plan) | CLONE_INTO_CGROUP;
  args.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<std::uintptr_t>(&stack);
  args.stack_size = sizeof stack;
  args.cgroup = static_cast<std::uint64_t>(plan.join_fd);
  ChildPlan born_inside = plan;
  born_inside.join_fd = -1;
  long result = SYS_clone3;
  register int (*child)(void*) asm("r8") = RunChild;
  register void* argument asm("r9") = &born_inside;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %[argument], %%rdi\n\t"
      "call *%[child]\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&args), "S"(sizeof args), [child] "r"(child), [argument] "r"(argument)
      : "rcx", "r11", "cc", "memory");
  plan.failure = born_inside.failure;
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
#else
  errno = ENOSYS;
#endif
  return -1;
}

// Returns the pid and sets the pidfd; -1 and errno on error.
pid_t StartChild(ChildPlan& plan, int* pidfd) {
  alignas(16) ChildStack stack;
  // The child's functions never return but exec, so AddressSanitizer's marks for their frames
  // remain and would be applied to ours.
  const absl::Cleanup forget = [&stack] { ASAN_UNPOISON_MEMORY_REGION(stack, sizeof stack); };
  if (plan.join_fd >= 0) {
    const pid_t pid = CloneIntoCgroup(plan, stack, pidfd);
    if (pid >= 0 || errno == EAGAIN || errno == ENOMEM) return pid;
    // A kernel before 5.7, a seccomp filter, or a group that is not ours: the child then tries to
    // join by itself.
  }
  return ::clone(RunChild, stack + sizeof stack, static_cast<int>(Flags(plan)) | SIGCHLD, &plan,
                 pidfd);
}

// If SIGCHLD is ignored (inherited from a shell's `trap '' CHLD`), the kernel discards exit
// statuses.
void MakeChildrenWaitable() {
  struct sigaction current;
  if (::sigaction(SIGCHLD, nullptr, &current) != 0) return;
  if (current.sa_handler != SIG_IGN && (current.sa_flags & SA_NOCLDWAIT) == 0) return;
  current = {};
  current.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &current, nullptr);
}

// The strings of `first`, if any, then of `second`, as an array for exec.
std::vector<char*> Pointers(const std::vector<std::string>* first,
                            const std::vector<std::string>& second) {
  std::vector<char*> pointers;
  pointers.reserve((first != nullptr ? first->size() : 0) + second.size() + 1);
  for (const std::vector<std::string>* strings : {first, &second}) {
    if (strings == nullptr) continue;
    for (const std::string& text : *strings) pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// A CPU set sized for its highest number: cpu_set_t ends at 1024.
class CpuSet {
 public:
  // `cpus` must not be empty or contain negative numbers.
  explicit CpuSet(const std::vector<int>& cpus) {
    const int count = *std::max_element(cpus.begin(), cpus.end()) + 1;
    size_ = CPU_ALLOC_SIZE(count);
    words_.resize(size_ / sizeof(unsigned long));
    for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), size_, set());
  }

  cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
  std::size_t size() const { return size_; }

 private:
  std::vector<unsigned long> words_;
  std::size_t size_ = 0;
};

absl::Status ForkError(int error) {
  if (error != EAGAIN && error != ENOMEM) {
    return base::SystemFailure(absl::StatusCode::kInternal, "fork", "", error);
  }
  std::string cause = base::SystemCause(error);
  if (error == EAGAIN) {
    cause += " (no more processes are allowed: raise `ulimit -u` or the control group's pids.max)";
  }
  return base::Failure(absl::StatusCode::kResourceExhausted, "fork", "", cause);
}

}  // namespace

absl::StatusOr<Spawned> Spawn(const SpawnRequest& request) {
  if (request.argv.empty()) return absl::InvalidArgumentError("no program given");
  absl::StatusOr<std::string> program = FindProgram(request.argv[0], std::getenv("PATH"));
  if (!program.ok()) return program.status();
  const std::vector<char*> argv = Pointers(nullptr, request.argv);
  const std::vector<char*> envp = Pointers(request.common_env.get(), request.env);

  ChildPlan plan = {};
  plan.program = program->c_str();
  plan.argv = argv.data();
  plan.envp = envp.data();
  plan.parent = ::getpid();
  plan.death_signal = request.death_signal;
  plan.join_fd = request.join_fd;
  plan.shares_files = HasCloseRange();
  plan.descriptor_limit = DescriptorLimitOfWorkers();
  std::optional<CpuSet> cpus;
  if (!request.cpus.empty()) {
    if (*std::min_element(request.cpus.begin(), request.cpus.end()) < 0) {
      return absl::InvalidArgumentError("bind to CPUs: a CPU's number is negative");
    }
    cpus.emplace(request.cpus);
    plan.cpus = cpus->set();
    plan.cpus_size = cpus->size();
  }

  const absl::Cleanup empty_slots = [&request] {
    if (request.slots != nullptr) request.slots->Empty();
  };
  const int wanted[3] = {request.stdin_fd, request.stdout_fd, request.stderr_fd};
  base::UniqueFd held[3];
  plan.highest_fd = std::max(STDERR_FILENO, request.join_fd);
  for (int target = 0; target < 3; ++target) {
    plan.stdio[target] = wanted[target];
    if (wanted[target] == target) continue;
    if (request.slots != nullptr) {
      plan.stdio[target] = request.slots->Fill(target, wanted[target]);
    } else if (wanted[target] <= STDERR_FILENO) {
      // The child may overwrite a low descriptor before it duplicates it.
      held[target] = base::DuplicateAboveStdio(wanted[target]);
      plan.stdio[target] = held[target].get();
    }
    if (plan.stdio[target] < 0) {
      return base::SystemFailure(absl::StatusCode::kInternal,
                                 "duplicate a descriptor for the worker");
    }
    plan.highest_fd = std::max(plan.highest_fd, plan.stdio[target]);
  }
  // Above all targets, so that none is overwritten before it is duplicated.
  std::vector<base::UniqueFd> held_more;
  std::vector<int> more;
  plan.more_count = static_cast<int>(request.more_fds.size());
  for (const int fd : request.more_fds) {
    held_more.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstMore + plan.more_count));
    more.push_back(held_more.back().get());
    if (more.back() < 0) {
      return base::SystemFailure(absl::StatusCode::kInternal,
                                 "duplicate a descriptor for the child");
    }
    plan.highest_fd = std::max(plan.highest_fd, more.back());
  }
  plan.more = more.data();

  MakeChildrenWaitable();
  // A signal delivered before the child resets its handlers would run ours, in our memory.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &plan.mask);
  int pidfd = -1;
  const pid_t pid = StartChild(plan, &pidfd);
  const int clone_errno = errno;
  ::pthread_sigmask(SIG_SETMASK, &plan.mask, nullptr);
  if (pid < 0) return ForkError(clone_errno);
  Spawned spawned{pid, base::UniqueFd(pidfd)};
  if (plan.failure.error == 0) return spawned;

  TEMP_FAILURE_RETRY(::waitpid(pid, nullptr, 0));
  if (plan.failure.step == Step::kExec) return ExecError(*program, plan.failure.error);
  const bool binds = plan.failure.step == Step::kAffinity;
  return base::SystemFailure(absl::StatusCode::kInternal,
                             kStepNames[static_cast<std::size_t>(plan.failure.step)],
                             binds ? absl::StrJoin(request.cpus, ",") : "", plan.failure.error);
}

}  // namespace muster::worker
