// What rank 0 knows, told to all.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/comm/process_group.h"

namespace muster::trainer {

// Rank 0's `found`, on every rank: the same bytes, or the same failure, so that all of them end
// alike when rank 0 could not get what they need. What other ranks give is not looked at. Every
// rank calls it; throws what c10d throws.
absl::StatusOr<std::string> FromRankZero(const absl::StatusOr<std::string>& found,
                                         ProcessGroup& group);

}  // namespace muster::trainer
