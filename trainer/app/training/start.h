// Where a training starts: at a checkpoint, or at the beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"
#include "trainer/app/options/options.h"
#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/train_state.h"
#include "trainer/comm/group.h"
#include "trainer/comm/world.h"
#include "trainer/data/dataset.h"
#include "trainer/io/checkpoint_directory.h"
#include "trainer/worker/launcher_link.h"
#include "trainer/worker/step_log.h"

namespace muster::trainer {

// Decides which ranks keep checkpoints.

// After a step every rank of a data-parallel training has the same state, so any of them can save
// it. Each node saves it in its own --checkpoint-dir: then the training survives the loss of any
// node, and hosts need no common file system. If nodes share the directory, only the lowest of
// their ranks saves. (The alternative, rank 0 alone with copies sent to other nodes, would send
// over the network what the other nodes already have.)
//
// With --checkpoint-format shards all ranks that share a directory write into it, one shard each: a
// team, whose lowest rank is the owner.
struct CheckpointOwners {
  std::vector<int> ranks;  // ascending; the same on every rank
  // The ranks that write into the same directory as this one, ascending; the first is its owner.
  // Empty if this rank writes nothing.
  std::vector<int> team;
  std::optional<CheckpointDirectory> directory;  // of the team
};

// Finds the owners: the first rank of each node (`local_rank` 0), and rank 0, if they have a
// directory and no lower one of them has the same; with shards, among all ranks. To compare
// directories, each rank creates a file and the others look for it, so that paths and kinds of file
// systems do not matter. Every rank must call it; if a directory cannot be created or written to on
// one rank, all return that error, kInvalidArgument. Throws what c10d throws.
absl::StatusOr<CheckpointOwners> FindCheckpointOwners(const CheckpointOptions& options,
                                                      int local_rank, Group& group);

// What one rank trains, and with which other ranks.

// Fixed before the first step. All parts outlive everything that uses them. One thread.
struct Job {
  const Options& options;  // with the shape of the data
  const Environment& env;
  const Splits& data;
  World& world;
  Progress& progress;
  BeatSender& beats;

  Group& group() const { return world.all(); }
  bool leads() const { return env.rank == 0; }
  // What a sample is called: "images" or "windows".
  const char* unit() const { return SampleUnit(data.train->shape().kind); }
};

// Keeps two runs from writing into one directory.

// This process's lock on a directory, released at the latest when the process ends, in whatever
// way. It is a POSIX record lock on the file `.lock` in it, which names its holder in one line, and
// works over NFS where that supports locks.
class DirectoryLock {
 public:
  // Takes the lock of `directory`. Another process of this machine that holds it may be about to
  // exit, so this waits up to 5 s before it returns kInvalidArgument with one sentence that names
  // that process. A lock held by another machine is no obstacle, as a server may keep it for
  // minutes after that machine died: then held() is false and warning() says so. If locks are not
  // supported, held() is false, too. Held until the object is destroyed, or the process ends.
  static absl::StatusOr<DirectoryLock> Take(const std::string& directory);

  bool held() const { return file_.valid(); }
  // A sentence for the user; empty if there is none.
  const std::string& warning() const { return warning_; }

 private:
  base::UniqueFd file_;
  std::string warning_;
};

struct StartPoint {
  TrainState state;
  CheckpointOwners owners;
  std::string job;  // this job's name, for its checkpoints
  // The step of this rank's team's checkpoint, if the run starts from it.
  std::optional<std::int64_t> kept_step;
  bool kept_everywhere = false;  // whether all owners have it
  // On the directory, held by its owner while it saves into it.
  std::optional<DirectoryLock> lock;
};

// Loads the state of a checkpoint into `strategy`, or else the requested initial parameters, which
// the other ranks get from rank 0 at the beginning. Tells the user what the run starts from, and
// records it in this rank's checkpoint directory, if it has one: after a restart the job recognizes
// its own checkpoints. Every rank calls it, and all return the same error: kInvalidArgument if
// checkpoint, model, data and options do not fit together, kUnavailable if reading or writing a
// file fails. Throws what c10d throws.
absl::StatusOr<StartPoint> FindStart(const Job& job, Strategy& strategy);

}  // namespace muster::trainer
