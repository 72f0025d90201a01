// Shares rank 0's result with all ranks.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/comm/process_group.h"

namespace muster::trainer {

// Returns rank 0's `found` on every rank: the same bytes, or the same error, so that all ranks fail
// alike when rank 0 could not get what they need. The argument of other ranks is ignored. Every
// rank must call it. Throws what c10d throws.
absl::StatusOr<std::string> FromRankZero(const absl::StatusOr<std::string>& found,
                                         ProcessGroup& group);

}  // namespace muster::trainer
