#include "worker/group/group_worker.h"

#include <algorithm>

namespace muster::worker {

std::optional<std::chrono::steady_clock::time_point> GroupWorker::LastOutput() const {
  // Nothing is less than any time.
  return std::max(out->last_output(), err->last_output());
}

WorkerExit GroupWorker::Exit() const {
  return {spec.rank, spec.local_rank, pid(), status, stopped_by_group, stuck};
}

}  // namespace muster::worker
