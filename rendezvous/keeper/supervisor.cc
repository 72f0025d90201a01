#include "rendezvous/keeper/supervisor.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/failure.h"
#include "rendezvous/keeper/port_holder.h"
#include "rendezvous/keeper/supervised_daemon.h"
#include "rendezvous/net/process_descriptors.h"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

// Sent in place of the state directory.
constexpr char kNoDirectory[] = "etcd";

// A shell's exit code for a program that cannot be started.
constexpr int kNoProgram = 127;

// The program that daemons are started from. Held open: a new file at its path is not used before
// SIGHUP.
class Program {
 public:
  Program() : fd_(open("/proc/self/exe", O_PATH | O_CLOEXEC)) {
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    if (size > 0) path_.assign(path, static_cast<std::size_t>(size));
  }
  ~Program() { close(fd_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int fd() const { return fd_; }

  void TakeNew() {
    const int taken = open(path_.c_str(), O_PATH | O_CLOEXEC);
    if (taken < 0) {
      spdlog::warn("open {}: {}; going on with the program as it was", path_, base::SystemCause());
      return;
    }
    close(std::exchange(fd_, taken));
  }

 private:
  int fd_;
  std::string path_;
};

sigset_t HandledSignals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&handled, signal);
  return handled;
}

// The kernel sends SIGHUP when a terminal goes away, and shells pass it on.
bool TerminalIsGone() {
  for (const int fd : {STDIN_FILENO, STDERR_FILENO}) {
    pollfd terminal = {fd, 0, 0};
    const bool gone = poll(&terminal, 1, 0) > 0 && (terminal.revents & POLLHUP) != 0;
    // isatty says no for a terminal that has hung up; EIO is the error specific to that.
    if (gone && !isatty(fd) && errno == EIO) return true;
  }
  return false;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& each : strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options)
      : argv_(std::move(options.argv)),
        read_again_(std::move(options.read_again)),
        check_(std::move(options.check)),
        state_(std::move(options.state)),
        things_{.sockets = std::move(options.sockets),
                .lock = state_ ? state_->lock() : options.shared_file,
                .state_path = state_ ? state_->path() : kNoDirectory,
                .key = MakeKnockKey()},
        ready_fd_(options.ready_fd),
        desk_(things_.sockets, things_.key, ProbeWord::kPaused) {}

  int Run() {
    const sigset_t handled = HandledSignals();
    sigprocmask(SIG_BLOCK, &handled, &inherited_mask_);
    // If the parent process ignores it, the daemon could not be waited for.
    std::signal(SIGCHLD, SIG_DFL);
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    // Ours to write to; the daemon must not inherit it.
    if (ready_fd_ > STDERR_FILENO) fcntl(ready_fd_, F_SETFD, FD_CLOEXEC);
    Do(policy_.OnBegin(Clock::now()));
    while (!exit_code_) Turn();
    return *exit_code_;
  }

 private:
  void Turn() {
    pollfd fds[] = {{signals_, POLLIN, 0},
                    {control_.fd(), POLLIN, 0},
                    {daemon_end_, POLLIN, 0},
                    {desk_.fd(), POLLIN, 0}};
    poll(fds, std::size(fds), TimeoutMs());
    // Messages from before a death come before the death.
    if (fds[1].revents != 0) HearDaemon();
    if (fds[2].revents != 0) WaitForDaemon();
    if (fds[0].revents != 0) HearSignals();
    if (fds[3].revents != 0) desk_.Handle();
    Do(policy_.OnTime(Clock::now()));
  }

  int TimeoutMs() const {
    const auto due = policy_.deadline();
    if (!due) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void HearDaemon() {
    for (;;) {
      const DaemonWord word = control_.Read();
      switch (word.kind) {
        case DaemonWord::Kind::kRead:
          Do(policy_.OnReadToGo(Clock::now()));
          break;
        case DaemonWord::Kind::kReady:
          Do(policy_.OnReady(word.port));
          break;
        case DaemonWord::Kind::kNothing:
          return;
      }
    }
  }

  void WaitForDaemon() {
    HearDaemon();
    int status = 0;
    TEMP_FAILURE_RETRY(waitpid(daemon_, &status, 0));
    close(std::exchange(daemon_end_, -1));
    daemon_ = -1;
    control_.Close();
    const DaemonEnd end = WIFSIGNALED(status) ? DaemonEnd{.signal = WTERMSIG(status)}
                                              : DaemonEnd{.exit_code = WEXITSTATUS(status)};
    Do(policy_.OnDied(end, Clock::now()));
  }

  void HearSignals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGHUP && !TerminalIsGone()) {
        Do(policy_.OnToldToReplace(TakeConfiguration(), Clock::now()));
      } else {
        Do(policy_.OnToldToEnd(signal == SIGINT ? SIGINT : SIGTERM));
      }
    }
  }

  // OK: used from the next start on; otherwise why it cannot be used.
  absl::Status TakeConfiguration() {
    auto argv = read_again_();
    if (!argv.ok()) return argv.status();
    if (absl::Status checked = check_(); !checked.ok()) return checked;
    argv_ = *std::move(argv);
    return absl::OkStatus();
  }

  // Only a warning: without SIGHUP the file may be half edited.
  void SayIfConfigurationHasChanged() {
    const auto argv = read_again_();
    if (argv.ok() && *argv == argv_) return;
    spdlog::warn(
        "the configuration has changed{}; starting the daemon with what was read last; SIGHUP "
        "reads it again",
        argv.ok() ? "" : ": " + std::string(argv.status().message()));
  }

  void Do(const SupervisorPolicy::Actions& actions) {
    for (const SupervisorPolicy::Action& action : actions) {
      std::visit([this](const auto& each) { Do(each); }, action);
    }
  }

  void Do(const SupervisorPolicy::Start& start) {
    if (start.new_program) program_.TakeNew();
    if (start.after_death) SayIfConfigurationHasChanged();
    const absl::Status started = StartDaemon();
    if (started.ok()) return;
    spdlog::error("start the daemon: {}", std::string(started.message()));
    Do(policy_.OnDied({.exit_code = kNoProgram}, Clock::now()));
  }

  void Do(const SupervisorPolicy::LetGo&) {
    // In this order: once decisions may be made, no probe may be told otherwise.
    desk_.Close();
    control_.GiveLeave();
  }

  void Do(const SupervisorPolicy::Announce& announce) {
    AnnounceReady(std::exchange(ready_fd_, -1), static_cast<std::uint16_t>(announce.port));
  }

  void Do(const SupervisorPolicy::Signal& signal) {
    if (daemon_ > 0) kill(daemon_, signal.number);
  }

  void Do(const SupervisorPolicy::Answer& answer) { answer.open ? desk_.Open() : desk_.Close(); }

  void Do(const SupervisorPolicy::Log& log) {
    spdlog::log(log.is_warning ? spdlog::level::warn : spdlog::level::info, log.sentence);
  }

  void Do(const SupervisorPolicy::End& end) { exit_code_ = end.exit_code; }

  absl::Status StartDaemon() {
    const absl::StatusOr<int> daemons_end = control_.Open(things_);
    if (!daemons_end.ok()) return daemons_end.status();
    std::vector<std::string> environment;
    for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
    environment.push_back(DaemonControl::Variable(*daemons_end, things_));
    const std::vector<char*> argv = Pointers(argv_);
    const std::vector<char*> envp = Pointers(environment);
    const pid_t keeper = getpid();
    const pid_t pid = fork();
    const int error = errno;
    if (pid == 0) BecomeDaemon(keeper, *daemons_end, argv.data(), envp.data());
    close(*daemons_end);
    if (pid < 0) {
      control_.Close();
      return base::SystemFailure(absl::StatusCode::kUnavailable, "fork", "", error);
    }
    daemon_ = pid;
    daemon_end_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (daemon_end_ >= 0) return absl::OkStatus();
    const absl::Status blind = base::SystemFailure(absl::StatusCode::kUnavailable, "pidfd_open");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    daemon_ = -1;
    control_.Close();
    return blind;
  }

  [[noreturn]] void BecomeDaemon(pid_t keeper, int daemons_end, char* const* argv,
                                 char* const* envp) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The keeper may have died before PR_SET_PDEATHSIG was set.
    if (getppid() != keeper) _exit(0);
    for (const int fd : things_.sockets) fcntl(fd, F_SETFD, 0);
    for (const int fd : {daemons_end, things_.lock}) fcntl(fd, F_SETFD, 0);
    // 0, 1 and 2 must not be free for the daemon's first open file.
    if (ready_fd_ >= 0 && ready_fd_ <= STDERR_FILENO) dup2(null_, ready_fd_);
    sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
    fexecve(program_.fd(), argv, envp);
    dprintf(STDERR_FILENO, "musterd: execute the daemon's program: %s\n", std::strerror(errno));
    _exit(kNoProgram);
  }

  std::vector<std::string> argv_;
  const std::function<absl::StatusOr<std::vector<std::string>>()> read_again_;
  const std::function<absl::Status()> check_;
  const std::optional<StateDirectory> state_;
  const KeptThings things_;
  int ready_fd_;
  const int null_ = open("/dev/null", O_RDWR | O_CLOEXEC);
  Program program_;
  ProbeResponder desk_;
  SupervisorPolicy policy_;

  int signals_ = -1;
  sigset_t inherited_mask_;
  DaemonControl control_;
  pid_t daemon_ = -1;    // -1: none
  int daemon_end_ = -1;  // its pidfd
  std::optional<int> exit_code_;
};

}  // namespace

int RunKeeper(SupervisorOptions options) {
  prctl(PR_SET_NAME, "musterd-keeper");
  return Supervisor(std::move(options)).Run();
}

}  // namespace muster::rendezvous
