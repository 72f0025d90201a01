#include "worker/failure_record.h"

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster::worker {

std::string SignalName(int signal) {
  // glibc knows the standard ones; the real-time range is counted from its ends as `kill -l` does.
  if (const char* name = ::sigabbrev_np(signal)) return absl::StrCat("SIG", name);
  if (signal == SIGRTMIN) return "SIGRTMIN";
  if (signal > SIGRTMIN && signal <= SIGRTMAX) {
    return absl::StrCat("SIGRTMIN+", signal - SIGRTMIN);
  }
  return absl::StrCat("signal ", signal);
}

std::string DescribeExit(const ExitStatus& status) {
  if (status.signal == 0) return absl::StrCat("exited with code ", status.exit_code);
  return absl::StrCat("was killed by ", SignalName(status.signal),
                      status.core_dumped ? " (core dumped)" : "");
}

}  // namespace muster::worker
