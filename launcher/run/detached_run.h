// Runs without a terminal: what they print is in a file, and how they ended beside it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

// Where they are: $XDG_STATE_HOME/muster/detached, else ~/.local/state/muster/detached. Empty:
// neither variable is set. Files stay there until somebody removes them.
std::string DetachedDir(const Environment& environment);

// The run's side. In the directory, NAME-PID.out gets what it prints, and NAME-PID.end, which it
// holds a lock on for as long as it lives, the exit code at its end.
class DetachedRun {
 public:
  // For the process that calls. Makes the directory (mode 0700) if it is missing. One line when
  // that, or a file in it, cannot be had.
  static absl::StatusOr<DetachedRun> Create(const std::string& directory,
                                            const std::string& run_id);

  // The file with the output.
  const std::string& path() const { return path_; }

  // stdin is empty from now on, and stdout and stderr are the file.
  void TakeStdio();

  // The run has ended, and everything it had to say was said.
  void Finish(int exit_code);

 private:
  std::string path_;
  base::UniqueFd output_;
  base::UniqueFd end_;
};

// The side of whoever looks for it.
struct FoundRun {
  pid_t pid = 0;  // in the PID namespace that it ran in
  std::string output;
  std::string end;
  timespec began{};     // by the file system's clock
  bool has_id = false;  // what was looked for is its run id, and not its pid
};

// Those of that run id, or of that pid, that left files there; those of that id first, and of them
// the latest.
std::vector<FoundRun> FindDetached(const std::string& directory, const std::string& name);

// Its .end file, open: to be asked whether the run lives, and how it ended.
class DetachedEnd {
 public:
  static absl::StatusOr<DetachedEnd> Open(const FoundRun& run);

  bool lives() const;
  // Whether the run is the process that has this pid here: another PID namespace may share the
  // directory, and its pids are anybody's here.
  bool IsOf(pid_t pid) const;
  // Blocks until the run has ended.
  void Await() const;
  // -1: it was killed, and left none.
  int exit_code() const;

 private:
  base::UniqueFd file_;
};

}  // namespace muster::launcher
