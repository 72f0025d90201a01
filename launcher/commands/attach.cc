#include "launcher/commands/attach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/unique_fd.h"
#include "launcher/commands/answer.h"
#include "launcher/environment.h"
#include "launcher/registry/detached_run.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

constexpr char kAttachHelp[] =
    R"(Usage: muster attach [--all] RUN

Shows what a run prints that was started with `muster run --detach`, until it ends, and exits with
the run's exit code. RUN is its run id, or its pid where no run has that id (`muster ps`). Ctrl-C
ends what shows it, and leaves the run alone; `muster stop RUN` ends the run. A run that has ended
is shown, too.

  --all       All that it has printed; otherwise the last 64 KiB are shown first.
  -h, --help  Print this text.

The output is in $XDG_STATE_HOME/muster/detached, else in ~/.local/state/muster/detached, and stays
there until you remove it.
)";

// What is shown of what was printed before.
constexpr off_t kShownBefore = 64 << 10;

int FailAttach(const std::string& why, int exit_code) {
  std::fprintf(stderr, "muster attach: %s\n", why.c_str());
  return exit_code;
}

bool WriteToStdout(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// Whether there is less than has been shown.
bool WasCut(int output) {
  struct stat info = {};
  return ::fstat(output, &info) == 0 && info.st_size < ::lseek(output, 0, SEEK_CUR);
}

// Everything that is there by now. False: stdout cannot be written.
bool CopyRest(int output) {
  char part[1 << 16];
  for (;;) {
    const ssize_t size = ::read(output, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size == 0 && WasCut(output)) {
      std::fprintf(stderr, "muster attach: the output was cut, and is shown from its beginning\n");
      ::lseek(output, 0, SEEK_SET);
      continue;
    }
    if (size <= 0) return true;
    if (!WriteToStdout(part, static_cast<std::size_t>(size))) return false;
  }
}

// To the beginning of a line among the last bytes.
void SkipMost(int output, const std::string& path) {
  struct stat info = {};
  if (::fstat(output, &info) != 0 || info.st_size <= kShownBefore) return;
  ::lseek(output, info.st_size - kShownBefore, SEEK_SET);
  char byte = 0;
  while (::read(output, &byte, 1) == 1 && byte != '\n') {
  }
  std::fprintf(stderr, "muster attach: what it printed before is in %s\n", path.c_str());
}

int Follow(const FoundRun& run, bool all) {
  const absl::StatusOr<DetachedEnd> end = DetachedEnd::Open(run);
  const base::UniqueFd output(
      ::open(run.output.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const base::UniqueFd changes(::inotify_init1(IN_CLOEXEC));
  if (!end.ok() || !output.valid() || !changes.valid() ||
      ::inotify_add_watch(changes.get(), run.output.c_str(), IN_MODIFY) < 0) {
    return FailAttach(absl::StrCat("read ", run.output, ": ", base::SystemCause()),
                      kExitNodeFailed);
  }
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, run.pid, 0)));
  if (!all) SkipMost(output.get(), run.output);
  // The lock is asked for once the process has been opened: as long as it is held, that is the
  // run's own.
  while (process.valid() && end->lives()) {
    if (!CopyRest(output.get())) return kExitNodeFailed;
    pollfd waits[] = {{changes.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) break;
    if (waits[1].revents != 0) break;
    char events[4096];
    if (waits[0].revents != 0 && ::read(changes.get(), events, sizeof events) < 0) break;
  }
  // At once, unless it is of another PID namespace.
  end->Await();
  if (!CopyRest(output.get())) return kExitNodeFailed;
  if (const int code = end->exit_code(); code >= 0) return code;
  return FailAttach("the run was killed before it could say how it ended", kExitNodeFailed);
}

}  // namespace

int AttachCommand(const std::vector<std::string>& args) {
  bool all = false;
  std::optional<std::string> name;
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return Answer("muster attach", kAttachHelp);
    if (arg == "--all") {
      all = true;
    } else if (absl::StartsWith(arg, "-") || name) {
      return FailAttach(absl::StrCat("unexpected argument '", arg, "'; see `muster attach --help`"),
                        kExitBadInput);
    } else {
      name = arg;
    }
  }
  if (!name) {
    return FailAttach("no run is named; `muster ps` lists those that are there", kExitBadInput);
  }
  const std::vector<FoundRun> found = FindDetached(DetachedDir(ReadEnvironment(environ)), *name);
  if (found.empty()) {
    return FailAttach(
        absl::StrCat("no run '", *name, "' was started with --detach on this machine by this user"),
        kExitBadInput);
  }
  return Follow(found.front(), all);
}

}  // namespace muster::launcher
