#include "trainer/app/muster_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/failure.h"

extern char** environ;

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

fs::path ThisProgram() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

bool IsProgram(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::atomic<pid_t> g_launcher{0};

// The terminal has told the launcher itself.
void PassOn(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0) kill(g_launcher, signal);
}

// While it exists, signals that should end this process are the launcher's.
class PassingOn {
 public:
  explicit PassingOn(pid_t launcher) {
    g_launcher = launcher;
    struct sigaction action = {};
    action.sa_sigaction = PassOn;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~PassingOn() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;

 private:
  struct sigaction interrupt_ = {};
  struct sigaction terminate_ = {};
};

absl::StatusOr<pid_t> Start(std::vector<std::string> argv) {
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // Those that SetUpProcess() ignores.
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&defaults, signal);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, argv[0].c_str(), &files, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return pid;
  return base::SystemFailure(absl::StatusCode::kUnavailable, "start", argv[0], error);
}

// Its exit code, 128 + the signal if one ended it.
int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::StatusOr<std::string> FindLauncher(const std::string& asked) {
  if (!asked.empty()) {
    if (IsProgram(asked)) return asked;
    return absl::InvalidArgumentError(
        absl::StrCat("--launcher ", asked, ": there is no program of that name"));
  }
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders =
      absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty());
  folders.insert(folders.begin(), ThisProgram().parent_path().string());
  for (const std::string& folder : folders) {
    const fs::path launcher = fs::path(folder) / "muster";
    if (IsProgram(launcher)) return launcher.string();
  }
  return absl::InvalidArgumentError(absl::StrCat("muster, which starts the ranks, is neither in ",
                                                 folders[0],
                                                 " nor in PATH; name it with --launcher FILE"));
}

absl::Status RunByMuster(const std::string& launcher, const std::vector<std::string>& arguments,
                         int ranks) {
  std::vector<std::string> argv = {launcher,
                                   "run",
                                   "--standalone",
                                   absl::StrCat("--nproc-per-node=", ranks),
                                   "--no-python",
                                   "--exit-code=worker",
                                   ThisProgram().string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const absl::StatusOr<pid_t> pid = Start(std::move(argv));
  if (!pid.ok()) return pid.status();
  const PassingOn passing_on(*pid);
  const int code = WaitFor(*pid);
  if (code == 0) return absl::OkStatus();
  // A rank's code, which is 2 when the user has to change something.
  return absl::Status(
      code == 2 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable,
      absl::StrCat("muster run ended with exit code ", code));
}

}  // namespace muster::trainer
