#include "worker/failure_record.h"

#include "absl/strings/str_cat.h"
#include "base/signal_names.h"

namespace muster::worker {

std::string DescribeExit(const ExitStatus& status) {
  if (status.signal == 0) return absl::StrCat("exited with code ", status.exit_code);
  return absl::StrCat("was killed by ", base::SignalName(status.signal),
                      status.core_dumped ? " (core dumped)" : "");
}

}  // namespace muster::worker
