#include "worker/group/worker_failure.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/signal_names.h"

namespace muster::worker {
namespace {

FailureRecord RecordOf(const WorkerSpec& spec) {
  FailureRecord record;
  record.rank = spec.rank;
  record.local_rank = spec.local_rank;
  record.log_path = spec.stderr_spec.file.empty() ? spec.stdout_spec.file : spec.stderr_spec.file;
  if (!spec.error_file.empty() && ::access(spec.error_file.c_str(), R_OK) == 0) {
    record.error_file = spec.error_file;
  }
  return record;
}

}  // namespace

FailureRecord CouldNotBeStarted(const WorkerSpec& spec, const absl::Status& status) {
  FailureRecord record = RecordOf(spec);
  record.status.exit_code = absl::IsNotFound(status) ? kExitNotFound : kExitNotExecutable;
  record.what = absl::StrCat("could not be started: ", status.message());
  record.lost_touch = absl::IsDeadlineExceeded(status);
  return record;
}

FailureRecord FailedWith(const WorkerSpec& spec, pid_t pid, const ExitStatus& status,
                         std::string stderr_tail, const KillSuspects& suspects) {
  FailureRecord failure = RecordOf(spec);
  failure.pid = pid;
  failure.status = status;
  failure.what = DescribeExit(status);
  failure.stderr_tail = std::move(stderr_tail);
  // So a shell passes it on when it was not the shell itself that was killed.
  const bool passed_on = status.exit_code == 128 + SIGKILL;
  if (!suspects.kill_reason.empty()) {
    failure.what = status.signal != 0
                       ? absl::StrCat("was killed by muster (", base::SignalName(status.signal),
                                      status.core_dumped ? ", core dumped" : "", "), as ",
                                      suspects.kill_reason)
                       : absl::StrCat(failure.what, " after muster had signalled it, as ",
                                      suspects.kill_reason);
    return failure;
  }
  if (status.signal != SIGKILL && !passed_on) return failure;
  if (suspects.guard_has_struck) {
    failure.lost_touch = true;
    absl::StrAppend(&failure.what, passed_on ? " after one of its processes was killed" : "",
                    " as its node had lost touch with the rendezvous");
  } else if (suspects.oom.ExplainsOneMore()) {
    absl::StrAppend(&failure.what, passed_on ? " after one of its processes was killed " : ", ",
                    suspects.oom.Describe());
  }
  return failure;
}

}  // namespace muster::worker
