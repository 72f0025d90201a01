// The runs on this machine: each leaves a file in a directory that all of one user share, and holds
// a lock on it for as long as it lives. The kernel drops the lock however the run ends, so that one
// killed with SIGKILL is told from a living one without trusting pids; whoever lists removes its
// file. Nothing here is needed for a run to work: whoever gets an error warns and goes on.
//
// The protocol: the file NAME.json is never written in place. Its owner writes NAME.tmp, locks that
// and renames it over NAME.json, and only then lets go of the old one. So whoever can lock the file
// that stands under the name knows that its owner is gone and that nobody will put another there:
// names hold a random part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/environment.h"
#include "launcher/registry/run_info.h"

namespace muster::launcher {

// Where runs are looked for: $MUSTER_RUNS_DIR alone, else $XDG_RUNTIME_DIR/muster,
// /tmp/muster-<uid> and /run/user/<uid>/muster. A run registers in the first that it can use; the
// rest are there because a batch job often lacks the XDG_RUNTIME_DIR that its user's terminal has.
std::vector<std::string> RunsDirs(const Environment& environment);

// One run's entry, from Register() to the end of the object. On one thread; its owner must not let
// it be destroyed in a forked child.
class RunRegistration {
 public:
  // Registers in the first directory of `dirs` that can be used, which is made (mode 0700) if it is
  // missing. One that is a symbolic link, belongs to somebody else or that others may write is not
  // used. An error, one line, when there is none: what is wrong with the first.
  static absl::StatusOr<std::unique_ptr<RunRegistration>> Register(
      const std::vector<std::string>& dirs, const RunInfo& info);

  // Removes the entry.
  ~RunRegistration();
  RunRegistration(const RunRegistration&) = delete;
  RunRegistration& operator=(const RunRegistration&) = delete;

  // Shows `info` from now on; on error the former one stays. Does nothing when they are the same.
  // A few microseconds: nothing waits for a disk.
  absl::Status Update(const RunInfo& info);

 private:
  explicit RunRegistration(std::string path_without_suffix);

  absl::Status Write(const RunInfo& info);

  const std::string base_;  // of NAME.json and NAME.tmp

  RunInfo shown_;
  base::UniqueFd file_;  // NAME.json, locked
};

struct RunList {
  // Living runs, the oldest first.
  std::vector<RunInfo> runs;
  // One line for each entry or directory that could not be read.
  std::vector<std::string> warnings;
};

// The living runs in these directories; those that are not there are passed over. Removes the files
// of dead runs.
RunList ListRuns(const std::vector<std::string>& dirs);

}  // namespace muster::launcher
