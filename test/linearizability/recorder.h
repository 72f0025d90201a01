// Records what clients of a real daemon see of a job's store while the daemon is killed and
// restarted, paused, and cut off from some of them.
//
// Six clients, each with its own thread and relay, send their next call as soon as they have an
// answer, and wait less than half a second for each. Faults happen after numbers of calls that are
// drawn from the seed, so that calls are always in progress, and last about a tenth of a second:
//   kill       SIGKILL, and a new daemon on the same port and state directory
//   pause      SIGSTOP, SIGCONT
//   partition  some clients' bytes are delayed or lost, in one or both directions
// Once all faults are over, one more client reads everything.
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
  // Remove the state directory after each kill, before the daemon is restarted. The checker must
  // notice that such a daemon has lost its memory.
  bool forgets = false;
};

struct Recording {
  StoreHistory history;
  // The times right after the daemon was killed.
  std::vector<std::int64_t> kills_ns;
  // Answers that a correct daemon never gives ("no job 'histories' here"), each once. Their calls
  // are not in the history.
  std::vector<std::string> refusals;
  // Why the recording could not be completed; empty if it was.
  std::string trouble;

  // The number of calls in progress at that time, and the number of those that write.
  std::size_t CallsAt(std::int64_t time_ns) const;
  std::size_t WritesAt(std::int64_t time_ns) const;
  std::size_t UnknownOutcomes() const;
};

// Takes a second or two. All its threads and processes are gone when it returns.
Recording Record(const RecordOptions& options);

}  // namespace muster::linearizability
