// What the rendezvous is told about a worker that failed: what its group saw, and what that means
// for the job.
#pragma once

#include <vector>

#include "launcher/config/exit_code_range.h"
#include "rendezvous/core/types.h"
#include "worker/failure_record.h"

namespace muster::launcher {

// What is known of a worker's progress. The defaults mean that it was not watched.
struct ProgressFacts {
  // Workers report progress, and this one had not done so yet.
  bool no_beat_yet = false;
  // It was killed for its silence, and the user wants no restart then.
  bool ends_job = false;
};

// The report on a worker of `node`, without the content of its error file. It is final, so that no
// restart follows, when `progress` says so or when the worker exited with one of
// `final_exit_codes`; a signal does not count as one.
rendezvous::WorkerFailure ReportOf(const worker::FailureRecord& record,
                                   const rendezvous::NodeInfo& node, const ProgressFacts& progress,
                                   const std::vector<ExitCodeRange>& final_exit_codes);

}  // namespace muster::launcher
