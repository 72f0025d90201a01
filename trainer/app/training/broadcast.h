// Shares what one rank knows with all ranks.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/comm/group.h"

namespace muster::trainer {

// Every rank must call these, with the same `root`; the arguments of ranks whose result is not
// asked for are ignored. They throw what c10d throws.

// Returns rank `root`'s `found` on every rank: the same bytes, or the same error, so that all ranks
// fail alike when that rank could not get what they need.
absl::StatusOr<std::string> FromRank(int root, const absl::StatusOr<std::string>& found,
                                     Group& group);
inline absl::StatusOr<std::string> FromRankZero(const absl::StatusOr<std::string>& found,
                                                Group& group) {
  return FromRank(0, found, group);
}

// Returns the contents of the file that rank `root` has at `path` on every rank, as a dense uint8
// tensor on the CPU. No rank ever holds them twice. Errors as FileSource.
absl::StatusOr<at::Tensor> FileFromRank(int root, const std::string& path, Group& group);

// Returns what each rank found, by rank, each cut at `most` bytes. If a rank failed, every rank
// returns the error of the lowest one that did; the others say in it which rank that was.
absl::StatusOr<std::vector<std::string>> FromAll(const absl::StatusOr<std::string>& mine,
                                                 std::size_t most, Group& group);
// The same where there is nothing to find: OK when all ranks are.
absl::Status FirstFailure(const absl::Status& mine, Group& group);

}  // namespace muster::trainer
