// The error for a data file that cannot be read.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"

namespace muster::trainer {

// "read /data/x.gz: truncated". kInvalidArgument.
inline absl::Status Unreadable(const std::string& path, absl::string_view why) {
  return base::Failure(absl::StatusCode::kInvalidArgument, "read", path, why);
}

}  // namespace muster::trainer
