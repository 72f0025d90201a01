// Decides which ranks keep checkpoints.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/group.h"
#include "trainer/io/checkpoint_directory.h"

namespace muster::trainer {

// After a step every rank of a data-parallel training has the same state, so any of them can save
// it. Each node saves it in its own --checkpoint-dir: then the training outlives the loss of any
// node, and hosts need no common file system. Where nodes share the directory, only the lowest of
// their ranks saves. (The alternative, rank 0 alone with copies sent to other nodes, would send
// over the network what the other nodes already have.)
//
// With --checkpoint-format shards all ranks that share a directory write into it, each a shard of
// its own: a team, whose lowest rank is the owner.
struct CheckpointOwners {
  std::vector<int> ranks;  // ascending; the same on every rank
  // The ranks that write into the same directory as this one, ascending; the first is their owner.
  // Empty when this rank writes nothing.
  std::vector<int> team;
  std::optional<CheckpointDirectory> directory;  // of the team
};

// Finds the owners: of each node its first rank (`local_rank` 0), and rank 0, if they have a
// directory and no lower one of them has the same; with shards, of all ranks. Whether directories
// are the same is tried out with a file that one rank makes and the others look for, so that paths
// and kinds of file systems do not matter. Every rank must call it, and if a directory cannot be
// made or written to on one rank, all return that error, kInvalidArgument. Throws what c10d throws.
absl::StatusOr<CheckpointOwners> FindCheckpointOwners(const CheckpointOptions& options,
                                                      int local_rank, Group& group);

}  // namespace muster::trainer
