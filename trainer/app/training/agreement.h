// Shares one rank's data with all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/settings.h"
#include "trainer/comm/group.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

namespace muster::trainer {

// Every rank must call these, with the same `root`; only the root's arguments matter. They throw
// what c10d throws.

// Returns rank `root`'s `found` on every rank: the same bytes, or the same error, so that all ranks
// fail alike.
absl::StatusOr<std::string> FromRank(int root, const absl::StatusOr<std::string>& found,
                                     Group& group);
inline absl::StatusOr<std::string> FromRankZero(const absl::StatusOr<std::string>& found,
                                                Group& group) {
  return FromRank(0, found, group);
}

// Returns the contents of rank `root`'s file at `path` on every rank, as a dense uint8 tensor on
// the CPU. No rank ever holds them twice. Errors as FileSource.
absl::StatusOr<at::Tensor> FileFromRank(int root, const std::string& path, Group& group);

// Returns every rank's result, by rank, each cut to `most` bytes. If a rank failed, every rank
// returns the error of the lowest one that did, prefixed with its rank on the others.
absl::StatusOr<std::vector<std::string>> FromAll(const absl::StatusOr<std::string>& mine,
                                                 std::size_t most, Group& group);
// The same without data: OK if all ranks are.
absl::Status FirstFailure(const absl::Status& mine, Group& group);

// Compares the ranks of a run.

// What must be the same on all ranks, as names and values.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// Returns the versions of muster-train and LibTorch, the numbers of samples, the names and scale of
// the data, and the options that must agree.
RankFacts FactsOf(const std::vector<Setting>& settings, const Splits& data);

// Describes how the first rank that differs from rank 0 does so, in one sentence: "rank 1 has --lr
// 0.2, and rank 0 has 0.1: give all ranks the same options". Empty if none differs. `facts` has one
// entry per rank.
std::string FirstDifference(const std::vector<RankFacts>& facts);

// Compares the ranks of `group`. kInvalidArgument, with the same sentence on all ranks, if any
// differs. Every rank must call it; throws what c10d throws.
absl::Status CheckRanksAlike(const RankFacts& mine, Group& group);

// Compares the models of the ranks. If a rank has none, returns the reason on every rank;
// kInvalidArgument if names, sizes or types of parameters and buffers, or which ones are frozen,
// differ from rank 0's. On the other ranks the sentence names that rank. Every rank must call it;
// throws what c10d throws.
absl::Status CheckModelsAlike(const absl::StatusOr<std::unique_ptr<Model>>& mine, Group& group);

}  // namespace muster::trainer
