#include "launcher/commands/detach.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/failure.h"
#include "base/unique_fd.h"
#include "launcher/commands/answer.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

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

}  // namespace

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
  const std::string name = run_id.empty() || run_id == "none" ? absl::StrCat(child) : run_id;
  return Answer("muster run", absl::StrCat("run '", run_id, "' (pid ", child,
                                           ") goes on in the background, and prints to ",
                                           told.substr(1), "\n`muster attach ", name,
                                           "` shows it, `muster stop ", name, "` ends it\n"));
}

}  // namespace muster::launcher
