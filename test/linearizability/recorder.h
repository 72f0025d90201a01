// Records what clients of a real daemon see of a job's store while the daemon is killed and started
// again, stands still, and is cut off from some of them.
//
// Six clients call as fast as they are answered, each on a thread and over a relay of its own, with
// patience for less than half a second. Faults come at numbers of calls that the seed draws, so
// that there are always calls under way, and last for a tenth of a second or so:
//   kill       SIGKILL, and a new daemon on the same port and state directory
//   pause      SIGSTOP, SIGCONT
//   partition  some clients' bytes are held or lost, in one direction or both
// When all is well again, one more client reads everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "test/linearizability/store_history.h"

namespace muster::linearizability {

struct RecordOptions {
  std::uint64_t seed = 1;
  std::string state_dir;
  // The state directory is removed after each kill, before the daemon is started again: what no
  // daemon that loses its memory may get away with.
  bool forgets = false;
};

struct Recording {
  StoreHistory history;
  // When the daemon had just been killed.
  std::vector<std::int64_t> kills_ns;
  // Answers that no sound daemon gives ("no job 'histories' here"), each once; the calls are not in
  // the history.
  std::vector<std::string> refusals;
  // Why the recording could not be finished; empty if it was.
  std::string trouble;

  // Calls that had begun before that time and were not over, and those of them that write.
  std::size_t CallsAt(std::int64_t time_ns) const;
  std::size_t WritesAt(std::int64_t time_ns) const;
  std::size_t UnknownOutcomes() const;
};

// Takes a second or two. All threads and processes are gone when it returns.
Recording Record(const RecordOptions& options);

}  // namespace muster::linearizability
