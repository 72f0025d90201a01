// Where a training starts: at a checkpoint, or at the beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/checkpoint_owners.h"
#include "trainer/app/training/job.h"
#include "trainer/app/training/train_state.h"
#include "trainer/io/directory_lock.h"

namespace muster::trainer {

struct StartPoint {
  TrainState state;
  CheckpointOwners owners;
  std::string job;  // this job's name, for the checkpoints that it saves
  // The step of the checkpoint that this rank's team has, if the run starts from it.
  std::optional<std::int64_t> kept_step;
  bool kept_everywhere = false;  // whether all owners have what the run starts from
  // Of the directory, on its owner. Whoever saves into the directory keeps it.
  std::optional<DirectoryLock> lock;
};

// Puts the state of a checkpoint into `strategy`, or else the first parameters that were asked for,
// which other ranks than 0 get when it begins. Tells the user what the run starts from, and says so
// in the checkpoint directory of this rank, if it has one: whoever restarts it then knows what is
// its own. Every rank calls it, and all return the same error: kInvalidArgument when checkpoint,
// model, data and options do not fit together, kUnavailable when reading or writing a file fails.
// Throws what c10d throws.
absl::StatusOr<StartPoint> FindStart(const Job& job, Strategy& strategy);

}  // namespace muster::trainer
