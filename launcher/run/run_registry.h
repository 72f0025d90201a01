// The runs on this machine. Each keeps a file in a directory that all runs of one user share, and
// holds a lock on it for as long as it lives. The kernel drops the lock however the run ends, so a
// run killed with SIGKILL can be told from a living one without trusting pids; whoever lists the
// runs removes its file. A run works without any of this: a caller that gets an error warns and
// continues.
//
// The protocol: the file NAME.json is never written in place. Its owner writes NAME.tmp, locks that
// and renames it over NAME.json, and only then lets go of the old one. So whoever can lock the file
// under that name knows that its owner is gone and that nobody will put another file there: names
// have a random part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "launcher/run/run_info.h"

namespace muster::launcher {

// One run's entry, from Register() to the end of the object. On one thread; its owner must not let
// it be destroyed in a forked child.
class RunRegistration {
 public:
  // Registers in the first usable directory of `dirs` (environment.h), which is created (mode 0700)
  // if it is missing. A directory that is a symbolic link, belongs to somebody else, or is writable
  // by others is not used, nor one to which a link of somebody else's leads (base/safe_path.h). If
  // none can be used, the error says in one line what is wrong with the first. From then on it is
  // the directory itself that is used, whatever its name may come to mean.
  static absl::StatusOr<std::unique_ptr<RunRegistration>> Register(
      const std::vector<std::string>& dirs, const RunInfo& info);

  // Removes the entry.
  ~RunRegistration();
  RunRegistration(const RunRegistration&) = delete;
  RunRegistration& operator=(const RunRegistration&) = delete;

  // Shows `info` from now on; on error the former one remains. Does nothing if they are equal.
  // Takes a few microseconds: it does not wait for a disk.
  absl::Status Update(const RunInfo& info);

 private:
  RunRegistration(base::UniqueFd directory, std::string path, std::string name);

  absl::Status Write(const RunInfo& info);

  const base::UniqueFd directory_;
  const std::string path_;  // of the directory, for messages
  const std::string name_;  // NAME, of NAME.json and NAME.tmp

  RunInfo shown_;
  base::UniqueFd file_;  // NAME.json, locked
};

struct RunList {
  // Live runs, the oldest first.
  std::vector<RunInfo> runs;
  // One line for each entry or directory that could not be read.
  std::vector<std::string> warnings;
};

// The live runs in these directories; missing directories are skipped. Removes the files of dead
// runs.
RunList ListRuns(const std::vector<std::string>& dirs);

}  // namespace muster::launcher
