#include "worker/failure_record.h"

#include "absl/strings/str_cat.h"
#include "base/phrases.h"

namespace muster::worker {

std::string DescribeExit(const ExitStatus& status) {
  return absl::StrCat(base::ExitPhrase(status.exit_code, status.signal),
                      status.core_dumped ? " (core dumped)" : "");
}

}  // namespace muster::worker
