// Compares the ranks of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/options/setting.h"
#include "trainer/comm/group.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

namespace muster::trainer {

// What has to be the same on all ranks, as names with values.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

// Returns the versions of muster-train and LibTorch, the numbers of samples, the names and scale of
// the data, and the options that all ranks must have in common.
RankFacts FactsOf(const std::vector<Setting>& settings, const Splits& data);

// Returns how the first rank that differs from rank 0 does so, in one sentence: "rank 1 has --lr
// 0.2, and rank 0 has 0.1: give all ranks the same options". Empty if no rank differs. `facts` has
// an entry for each rank.
std::string FirstDifference(const std::vector<RankFacts>& facts);

// Compares the ranks of `group`. kInvalidArgument, with the same sentence on all ranks, if one
// differs. Every rank must call it; throws what c10d throws.
absl::Status CheckRanksAlike(const RankFacts& mine, Group& group);

// Compares the models that the ranks have made. If a rank has none, returns on every rank why not;
// kInvalidArgument if the names, sizes or types of parameters and buffers are not rank 0's, or not
// the same ones are frozen. The others say in it which rank that is. Every rank must call it;
// throws what c10d throws.
absl::Status CheckModelsAlike(const absl::StatusOr<std::unique_ptr<Model>>& mine, Group& group);

}  // namespace muster::trainer
