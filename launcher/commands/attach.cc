#include "launcher/commands/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "base/cli/readers.h"
#include "base/failure.h"
#include "base/unique_fd.h"
#include "launcher/cli/command_run.h"
#include "launcher/commands/commands.h"
#include "launcher/remote/link_command.h"

namespace muster::launcher {
namespace {

struct AttachArgs : base::CommandArgs {
  bool all = false;
};

constexpr base::Flag kAttachFlags[] = {
    {.name = "--all",
     .kind = base::Flag::Kind::kSwitch,
     .help = "All that it has printed; otherwise the last 64 KiB are shown first.",
     .set = base::Store<base::ReadSwitch, &AttachArgs::all>},
};

// What is shown of what was printed before.
constexpr off_t kShownBefore = 64 << 10;

constexpr char kAttach[] = "muster attach";

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
  std::fprintf(stderr, "muster attach: earlier output is in %s\n", path.c_str());
}

int Follow(const FoundRun& run, bool all) {
  const absl::StatusOr<DetachedEnd> end = DetachedEnd::Open(run);
  const base::UniqueFd output(
      ::open(run.output.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const base::UniqueFd changes(::inotify_init1(IN_CLOEXEC));
  if (!end.ok() || !output.valid() || !changes.valid() ||
      ::inotify_add_watch(changes.get(), run.output.c_str(), IN_MODIFY) < 0) {
    return Fail(kAttach, absl::StrCat("read ", run.output, ": ", base::SystemCause()),
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
  return Fail(kAttach, "the run was killed before it could say how it ended", kExitNodeFailed);
}

int Attach(const AttachArgs& args) {
  const std::string& name = args.operands.front();
  const std::vector<FoundRun> found = FindDetached(DetachedDir(ReadEnvironment(environ)), name);
  if (!found.empty()) return Follow(found.front(), args.all);
  return Fail(
      kAttach,
      absl::StrCat("no run '", name, "' was started with --detach on this machine by this user"),
      kExitBadInput);
}

// What the new process tells: this and the path of its output, or why there is none.
constexpr char kThere = '+';

std::string ReadToEnd(int fd) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t size = ::read(fd, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(part, static_cast<std::size_t>(size));
  }
}

void TellParent(int fd, absl::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
}

int FailDetach(absl::string_view why) {
  std::fprintf(stderr, "muster run: --detach: %s\n", std::string(why).c_str());
  return kExitNodeFailed;
}

// A run id as an argument that a shell and our commands read as it is.
std::string Argument(const std::string& run_id) {
  const bool is_word = std::all_of(run_id.begin(), run_id.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("._-+:@/%,", std::string(1, c));
  });
  return absl::StrCat(absl::StartsWith(run_id, "-") ? "-- " : "",
                      is_word ? run_id : ShellQuoted(run_id));
}

}  // namespace

base::Command AttachCommand() {
  return {
      .name = "attach",
      .summary = "show the output of a run that was started with --detach",
      .operands = "RUN",
      .about =
          R"(Shows what a run prints that was started with `muster run --detach`, until it ends, and exits with
the run's exit code. RUN is its run id, or its pid where no run has that id (`muster ps`). Ctrl-C
ends what shows it, and leaves the run alone; `muster stop RUN` ends the run. A run that has ended
is shown, too.
)",
      .end =
          R"(The output is in $XDG_STATE_HOME/muster/detached, else in ~/.local/state/muster/detached, and stays
there until you remove it.
)",
      .missing = "no run is named; `muster ps` lists the runs of this machine",
      .flags = base::WithHelp({kAttachFlags}),
      .run = WithArgs<AttachArgs, Attach>};
}

std::variant<DetachedRun, int> Detach(const std::string& run_id, const Environment& environment) {
  const std::string directory = DetachedDir(environment);
  if (directory.empty()) {
    return FailDetach("there is no place for the output; set HOME or XDG_STATE_HOME");
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailDetach(base::SystemCause());
  base::UniqueFd hears(ends[0]), tells(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return FailDetach(absl::StrCat("start a process: ", base::SystemCause()));
  if (child == 0) {
    hears.reset();
    ::setsid();
    absl::StatusOr<DetachedRun> run = DetachedRun::Create(directory, run_id);
    if (!run.ok()) {
      TellParent(tells.get(), run.status().message());
      ::_exit(kExitNodeFailed);
    }
    run->TakeStdio();
    TellParent(tells.get(), absl::StrCat(std::string(1, kThere), run->path()));
    return *std::move(run);
  }
  tells.reset();
  const std::string told = ReadToEnd(hears.get());
  if (told.empty() || told.front() != kThere) {
    ::waitpid(child, nullptr, 0);
    return FailDetach(told.empty() ? "the new process ended at once" : told);
  }
  // Without a name of its own it is found by its pid.
  const std::string name =
      run_id.empty() || run_id == "none" ? absl::StrCat(child) : Argument(run_id);
  return PrintOutput("muster run", absl::StrCat("run '", run_id, "' (pid ", child,
                                                ") goes on in the background, and prints to ",
                                                told.substr(1), "\n`muster attach ", name,
                                                "` shows it, `muster stop ", name, "` ends it\n"));
}

}  // namespace muster::launcher
