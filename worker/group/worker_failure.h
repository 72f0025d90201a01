// The record of a worker that failed, with what is known about why.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "worker/exit_status.h"
#include "worker/failure_record.h"
#include "worker/tree/oom.h"
#include "worker/worker_spec.h"

namespace muster::worker {

// What may be behind a SIGKILL, the likeliest first.
struct KillSuspects {
  // Why we sent it (WorkerGroup::KillFor); empty: we did not.
  const std::string& kill_reason;
  // The guard has killed workers that had lost touch (OrphanGuard::has_struck).
  bool guard_has_struck = false;
  // Asked last, as it explains each of its kills only once.
  OomWatch& oom;
};

// DeadlineExceeded: its node had lost touch with the rendezvous (WorkerGroup::SetDeadline).
FailureRecord CouldNotBeStarted(const WorkerSpec& spec, const absl::Status& status);

// `status` is not a success.
FailureRecord FailedWith(const WorkerSpec& spec, pid_t pid, const ExitStatus& status,
                         std::string stderr_tail, const KillSuspects& suspects);

}  // namespace muster::worker
