// How the workers of one group ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker/exit_status.h"
#include "worker/failure_record.h"

namespace muster::worker {

// How one worker that was started ended.
struct WorkerExit {
  int rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  // nullopt: SIGKILL did not end it within StopLadder::give_up, and it is left behind.
  std::optional<ExitStatus> status;
  // It was still running when the group began to stop.
  bool stopped_by_group = false;
  // What it was doing when it was given up: "is in state D (uninterruptible sleep) in
  // nfs_wait_bit". Empty when it has ended.
  std::string stuck;
};

enum class GroupEnd {
  kSucceeded,  // every worker exited with 0, unasked
  kFailed,     // a worker failed: GroupResult::failure
  kStopped,    // the group was stopped before that
};

struct GroupResult {
  GroupEnd end = GroupEnd::kSucceeded;
  // The first failure, in the order in which exits were observed; set exactly for kFailed.
  std::optional<FailureRecord> failure;
  // Workers that also failed by themselves, before the signal to stop reached them, in the order in
  // which their ends were observed. However a stopped worker ends, that is not a failure.
  std::vector<FailureRecord> other_failures;
  // One for each worker that was started, in the order of the specs.
  std::vector<WorkerExit> exits;
  // Bytes of worker output that no log file would take (disk full).
  std::uint64_t log_bytes_dropped = 0;
};

}  // namespace muster::worker
