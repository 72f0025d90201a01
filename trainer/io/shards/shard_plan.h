// Shares a checkpoint's tensors among shards.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/shards/shard_index.h"
#include "trainer/io/value.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

struct ShardPlan {
  ShardIndex index;  // complete but for the facts of its files
  // What each shard holds. The tensors share their elements with the checkpoint.
  std::vector<std::vector<NamedTensor>> tensors;
};

// Shares the tensors of `checkpoint` among `shards` (1 to kMostShards) shards, evenly by their
// bytes: the largest first, each to the shard that has least. The same checkpoint always makes the
// same plan, so that ranks need not speak about it. A tensor that occurs several times (a tied
// weight) is in one shard, once. No tensor is cut: it would have to be put together again by
// whoever reads the files, and readers of safetensors do not; so a shard is larger than the mean by
// at most the largest tensor.
//
// kInvalidArgument, with one clause, when a tensor is not dense or of a dtype that Dtype lacks, or
// when the tree is deeper than 100.
absl::StatusOr<ShardPlan> PlanShards(const Value& checkpoint, int shards);

}  // namespace muster::trainer
