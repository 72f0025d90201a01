// From a node's place in a round to its workers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"
#include "launcher/cli/launch_config.h"
#include "launcher/machine/cpus.h"
#include "launcher/machine/environment.h"
#include "rendezvous/core/values/types.h"
#include "worker/worker_spec.h"

namespace muster::launcher {

// Where the logs of a run are, in torchrun's layout:
//   <log dir>/<run id>_XXXXXXXX/attempt_<restart count>/<local rank>/
//       stdout.log, stderr.log, error.json
// and beside the local ranks filtered_stdout.log and filtered_stderr.log. Without a log directory
// it is <temporary directory>/muster_XXXXXXXX, and the names in it are the same whatever is written
// there, as scripts take paths such as TORCHELASTIC_ERROR_FILE apart. Each agent process has a run
// directory of its own, so nodes may share a log directory. No file is ever deleted.

// Absolute paths of what one worker may write; all empty when logs are off. The files need not
// exist.
struct RankLogs {
  std::string directory;  // of the three below
  std::string stdout_log;
  std::string stderr_log;
  std::string error_file;

  bool operator==(const RankLogs&) const = default;
};

// One start of this node's workers.
struct AttemptLogs {
  // Empty when logs are off.
  std::string directory;
  // By local rank.
  std::vector<RankLogs> ranks;
  // Where --duplicate-*-filters copy to; empty when logs are off.
  std::string filtered_stdout_log;
  std::string filtered_stderr_log;
  // Where workers log their operations: a file, and the places in it by local rank (see
  // worker::FlightFile). Empty: nowhere.
  std::string flight_log;
  std::vector<std::size_t> flight_offsets;
};

// What the name of a run directory begins with: "<run id>_", escaped and cut as a file's name needs
// it. Random characters follow.
std::string RunPrefix(const std::string& run_id);

// The names within an attempt's directory; nothing is created.
AttemptLogs LogsIn(const std::string& directory, int nproc);

// Whether there is anything to read in a run directory so far.
bool HasLogs(const std::string& run_directory);

// Where LogLayout is to put logs: where the user says, else in the temporary directory. Where
// nothing can be written there are none, as long as nothing asks for them; else it is an error.
absl::StatusOr<std::string> LogDirOf(const LaunchConfig& config, const TempDir& temp);

// Copied freely; the directories are not removed with it.
class LogLayout {
 public:
  // Creates the run directory, readable only by its owner, in `log_dir` (created if missing). ""
  // stands for a fresh directory in `temp_dir`, "/dev/null" turns logs off. The error names the
  // directory and the cause.
  static absl::StatusOr<LogLayout> Create(const std::string& log_dir, const std::string& run_id,
                                          const std::string& temp_dir);

  // Creates the directory of an attempt of `nproc` workers; those of the workers in it are made
  // with the workers (WorkerSpec::directory). The first round with a restart count gets
  // attempt_<count>; a later one with the same count, after nodes came or went, gets
  // attempt_<count>.round<round>.
  absl::StatusOr<AttemptLogs> BeginAttempt(int restart_count, rendezvous::RoundNumber round,
                                           int nproc) const;

  // Removes the directories that are still empty. Called when the workers are gone.
  void RemoveEmpty() const;

  // Absolute; empty when logs are off.
  const std::string& run_directory() const { return run_directory_; }
  // The directory around that one, which this run has made in `temp_dir` for its user alone;
  // empty where the user has named a log directory, which may be on a disk that others share.
  const std::string& own_root() const { return own_root_; }

 private:
  LogLayout(std::string own_root, std::string run_directory, base::UniqueFd run_fd)
      : own_root_(std::move(own_root)),
        run_directory_(std::move(run_directory)),
        run_fd_(std::make_shared<const base::UniqueFd>(std::move(run_fd))) {}

  // The fresh directory around run_directory_; empty when the user has named one.
  std::string own_root_;
  std::string run_directory_;
  // Of that directory, open for what is made in it (O_PATH).
  std::shared_ptr<const base::UniqueFd> run_fd_;
};

// What the workers of this node have in common, round after round.
struct NodeBase {
  // As BaseEnvironment() makes it.
  Environment environment;
  // The name of this machine, for ${hostname}.
  std::string host;
  // By local rank; empty: not bound.
  std::vector<CpuList> cpus;
  // The watchdog's FIFO, or empty.
  std::string timer_file;
  // Where workers report their progress, or empty.
  std::string beat_socket;
  // HOST:PORT at which workers reach the rendezvous; empty: it has no port.
  std::string rendezvous;
};

// One spec for each local rank, in order. Each worker has the base's environment, overlaid with
// torchrun's variables. `logs` must have an entry for each local rank, and with virtual local ranks
// the environment must have a device for each (flags.cc has made sure of that).
//
// A redirected stream goes only to its file; a tee'd one to its file and, with a prefix on each
// line, to the console; any other goes straight to the console, stderr in such a way that a failure
// report can show its end. What --local-ranks-filter leaves out does not reach the console.
std::vector<worker::WorkerSpec> LayOutRanks(const LaunchConfig& config,
                                            const rendezvous::Assignment& assignment,
                                            const NodeBase& base, const AttemptLogs& logs);

}  // namespace muster::launcher
