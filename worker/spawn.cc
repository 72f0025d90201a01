#include "worker/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/program.h"

namespace muster::worker {
namespace {

// What the child was about to do when it failed.
enum class Step : int { kSession, kDeathSignal, kAffinity, kDescriptors, kExec };

// How the child tells; small enough to pass through a pipe in one piece.
struct ChildError {
  Step step;
  int error;
};

// Everything the child needs, made before the fork: after it, memory must not be allocated.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* envp;
  int stdio[3];  // each is its own target already, or above 2
  int error_fd;
  int join_fd;
  const cpu_set_t* cpus;  // null: as the parent's
  std::size_t cpus_size;
  pid_t parent;
  sigset_t mask;
};

const char* StepName(Step step) {
  switch (step) {
    case Step::kSession:
      return "setsid";
    case Step::kDeathSignal:
      return "prctl(PR_SET_PDEATHSIG)";
    case Step::kAffinity:
      return "bind to CPUs";
    case Step::kDescriptors:
      return "dup2";
    case Step::kExec:
      return "execve";
  }
  std::abort();
}

[[noreturn]] void FailInChild(const ChildPlan& plan, Step step) {
  const ChildError report{step, errno};
  [[maybe_unused]] const ssize_t written = ::write(plan.error_fd, &report, sizeof report);
  ::_exit(127);
}

// Ignored signals survive exec, so each is put back to its default. All signals are blocked
// meanwhile.
void ResetSignalHandlers() {
  struct sigaction fresh = {};
  fresh.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction current;
    if (signal == SIGHUP && ::sigaction(signal, nullptr, &current) == 0 &&
        current.sa_handler == SIG_IGN) {
      continue;  // nohup: a closing terminal must not end the job
    }
    ::sigaction(signal, &fresh,
                nullptr);  // fails for SIGKILL, SIGSTOP and glibc's own two: no matter
  }
}

// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void RunChild(const ChildPlan& plan) {
  ResetSignalHandlers();
  // A session, not just a group: as under torchrun, the worker has no controlling terminal, so it
  // may read from it (a debugger prompt) where a background process group would be stopped by
  // SIGTTIN.
  if (::setsid() < 0) FailInChild(plan, Step::kSession);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) FailInChild(plan, Step::kDeathSignal);
  // The parent may have died before the prctl; then no signal will come.
  if (::getppid() != plan.parent) ::_exit(127);
  if (plan.join_fd >= 0) {
    [[maybe_unused]] const ssize_t joined = ::write(plan.join_fd, "0", 1);
  }
  if (plan.cpus != nullptr && ::sched_setaffinity(0, plan.cpus_size, plan.cpus) != 0) {
    FailInChild(plan, Step::kAffinity);
  }
  for (int target = 0; target < 3; ++target) {
    if (plan.stdio[target] == target) continue;
    if (::dup2(plan.stdio[target], target) < 0) FailInChild(plan, Step::kDescriptors);
  }
  // Ours are close-on-exec already; this is for what others opened in our process or left open in
  // it. A kernel before 5.11 does not know the flag, and then those few pass on.
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  ::sigprocmask(SIG_SETMASK, &plan.mask, nullptr);
  ::execve(plan.program, plan.argv, plan.envp);
  FailInChild(plan, Step::kExec);
}

// Where SIGCHLD is ignored (a shell's `trap '' CHLD` is inherited) the kernel throws exit statuses
// away.
void MakeChildrenWaitable() {
  struct sigaction current;
  if (::sigaction(SIGCHLD, nullptr, &current) != 0) return;
  if (current.sa_handler != SIG_IGN && (current.sa_flags & SA_NOCLDWAIT) == 0) return;
  current = {};
  current.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &current, nullptr);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// A set of CPUs as large as its highest number asks: cpu_set_t itself ends at 1024.
class CpuSet {
 public:
  // `cpus` must not be empty, nor hold a negative number.
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

absl::Status SystemError(const char* attempt) {
  return absl::InternalError(absl::StrCat(attempt, ": ", std::strerror(errno)));
}

absl::Status ForkError(int error) {
  const std::string sentence = absl::StrCat("fork: ", std::strerror(error));
  if (error == ENOMEM) return absl::ResourceExhaustedError(sentence);
  if (error != EAGAIN) return absl::InternalError(sentence);
  return absl::ResourceExhaustedError(absl::StrCat(
      sentence,
      " (no more processes are allowed: raise `ulimit -u` or the control group's pids.max)"));
}

void Reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<Spawned> Spawn(const SpawnRequest& request) {
  if (request.argv.empty()) return absl::InvalidArgumentError("no program given");
  absl::StatusOr<std::string> program = FindProgram(request.argv[0], std::getenv("PATH"));
  if (!program.ok()) return program.status();
  const std::vector<char*> argv = Pointers(request.argv);
  const std::vector<char*> envp = Pointers(request.env);

  ChildPlan plan = {};
  plan.program = program->c_str();
  plan.argv = argv.data();
  plan.envp = envp.data();
  plan.parent = ::getpid();
  plan.join_fd = request.join_fd;
  std::optional<CpuSet> cpus;
  if (!request.cpus.empty()) {
    if (*std::min_element(request.cpus.begin(), request.cpus.end()) < 0) {
      return absl::InvalidArgumentError("bind to CPUs: a CPU's number is negative");
    }
    cpus.emplace(request.cpus);
    plan.cpus = cpus->set();
    plan.cpus_size = cpus->size();
  }

  const int wanted[3] = {request.stdin_fd, request.stdout_fd, request.stderr_fd};
  UniqueFd held[3];
  for (int target = 0; target < 3; ++target) {
    plan.stdio[target] = wanted[target];
    if (wanted[target] == target) continue;
    held[target] = DuplicateAboveStdio(wanted[target]);
    if (!held[target].valid()) return SystemError("duplicate a descriptor for the worker");
    plan.stdio[target] = held[target].get();
  }

  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) return SystemError("make a pipe");
  UniqueFd error_read(error_pipe[0]);
  UniqueFd error_write(error_pipe[1]);
  // With 0, 1 or 2 closed in our process the pipe may have landed there.
  UniqueFd error_write_high = DuplicateAboveStdio(error_write.get());
  if (!error_write_high.valid()) return SystemError("make a pipe");
  error_write.reset();
  plan.error_fd = error_write_high.get();

  MakeChildrenWaitable();
  // A signal that reached the child before it reset its handlers would run ours, in its copy of our
  // loop.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &plan.mask);
  const pid_t pid = ::fork();
  if (pid == 0) RunChild(plan);
  const int fork_errno = errno;
  ::pthread_sigmask(SIG_SETMASK, &plan.mask, nullptr);
  if (pid < 0) {
    return ForkError(fork_errno);
  }

  // exec closes the pipe without a word; anything read from it is a failure.
  error_write_high.reset();
  ChildError failure;
  ssize_t count;
  do {
    count = ::read(error_read.get(), &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof failure)) {
    Reap(pid);
    if (failure.step == Step::kExec) return ExecError(*program, failure.error);
    errno = failure.error;
    if (failure.step == Step::kAffinity) {
      return SystemError(absl::StrCat("bind to CPUs ", absl::StrJoin(request.cpus, ",")).c_str());
    }
    return SystemError(StepName(failure.step));
  }

  UniqueFd pidfd(
      static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by definition
  if (!pidfd.valid()) {
    const absl::Status status = SystemError("pidfd_open");
    ::kill(pid, SIGKILL);
    Reap(pid);
    return status;
  }
  return Spawned{pid, std::move(pidfd)};
}

}  // namespace muster::worker
