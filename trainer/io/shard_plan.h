// Shares a checkpoint's tensors among shards.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/io/formats/shard_index.h"
#include "trainer/io/state_dict.h"
#include "trainer/runtime/named_tensor.h"

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

// What the tensors of a checkpoint are called where they have no tree around them.

// A model's tensors keep their names, by which other programs find them; those of the rest say
// ahead of it what they are:
//   ['model']['conv1.weight']                     conv1.weight
//   ['ema']['conv1.weight']                       ema.conv1.weight
//   ['optimizer']['state'][0]['momentum_buffer']  optimizer.momentum_buffer.conv1.weight
//   ['other'][1]                                  other.1
// No two tensors have the same name: where these would, the later one in the tree gets a "_" at its
// end.
class TensorNames {
 public:
  explicit TensorNames(const Value& checkpoint);

  // The name of the tensor at `place`: the keys and numbers that lead to it from the root. Call it
  // once for each.
  std::string NameAt(const std::vector<std::string>& place);

 private:
  std::map<std::string, std::string> parameters_;  // of the optimizer, by number
  std::set<std::string> taken_;
};

}  // namespace muster::trainer
