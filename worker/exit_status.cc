#include "worker/exit_status.h"

#include "absl/strings/str_cat.h"

#include "base/text.h"

namespace muster::worker {

std::string DescribeExit(const ExitStatus& status) {
  return absl::StrCat(base::ExitPhrase(status.exit_code, status.signal),
                      status.core_dumped ? " (core dumped)" : "");
}

}  // namespace muster::worker
