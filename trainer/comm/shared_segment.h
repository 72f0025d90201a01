// Creates memory that the ranks of a host share.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/comm/host_layout.h"
#include "trainer/comm/shm_segment.h"

namespace muster::trainer {

// Sends a short text from each rank to all ranks; returns the texts by rank.
using GatherText = std::function<std::vector<std::string>(const std::string& mine)>;

// On each host, the leader creates a zeroed segment of its `bytes` and the other ranks open it;
// then the segment is withdrawn, so that no other process can open it. All ranks call it together.
// kUnavailable on every rank, with the message of the first one that failed, whose rank in the
// world is `members`[its rank in `layout`].
absl::StatusOr<ShmSegment> MakeSharedSegment(const HostLayout& layout,
                                             const std::vector<int>& members, std::size_t bytes,
                                             const GatherText& gather);

}  // namespace muster::trainer
