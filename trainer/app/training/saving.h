// Saves checkpoints of a training in progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/start.h"
#include "trainer/app/training/train_state.h"
#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/formats/files.h"
#include "trainer/io/formats/shard_index.h"
#include "trainer/io/state_dict.h"

namespace muster::trainer {

// Copies of a value's tensors.

// Reuses its memory for the next copy: checkpoints of a training have the same size, and memory
// that the kernel has to clear first takes several times as long to fill. One thread at a time.
class TensorCopies {
 public:
  // Returns `value` with a copy of each tensor, dense and on the CPU; one that occurs several times
  // is copied once. The copies are valid until the next call. kInvalidArgument if the tree is
  // deeper than 100. Throws c10::Error if out of memory.
  absl::StatusOr<Value> Copy(const Value& value);

 private:
  std::vector<at::Tensor> buffers_;  // in the order of the tree
};

// Writes checkpoints while the training goes on.

// The shard of a checkpoint that a rank writes.
struct Share {
  int shard = 0;
  int shards = 1;
};

// Copies the state, and writes it on a separate thread: a step waits only for the copying. One
// checkpoint at a time. Needs memory for what it writes, one checkpoint or one shard, in addition
// to the model. All methods are called from one thread.
class CheckpointWriter {
 public:
  // Writes into `directory`, as job `job` (CheckpointDirectory::Save).
  CheckpointWriter(CheckpointDirectory directory, std::string job);
  // Waits for the write in progress.
  ~CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Starts writing `snapshot` as the checkpoint after step `step`, once the previous one is
  // written; its tensors may change after this returns. Does nothing after a failure. Throws
  // c10::Error if there is no memory for the copy. `best` as in CheckpointDirectory::Save.
  void Start(std::int64_t step, const Value& snapshot,
             std::optional<std::int64_t> best = std::nullopt);

  // The same for a checkpoint in shards, one per rank, in three steps. First one rank prepares
  // (CheckpointDirectory::PrepareShards; errors as there).
  absl::Status PrepareShards(std::int64_t step) const { return directory_.PrepareShards(step); }
  // Then each rank starts writing its own, as with Start; all have the same snapshot.
  void StartShard(std::int64_t step, const Value& snapshot, const Share& share,
                  std::optional<std::int64_t> best = std::nullopt);
  // This rank's shard, once written; the first failure if there was one.
  absl::StatusOr<FileFacts> shard() const;
  // Then one rank starts writing the index, from all ranks' shards, in order.
  void StartIndex(const std::vector<FileFacts>& files);

  // Starts marking the checkpoint of step `step`, once it is written, as the best
  // (CheckpointDirectory::MarkBest).
  void StartBest(std::int64_t step);

  // Waits for the write in progress, at most for `most`; returns whether it is done.
  bool WaitFor(std::chrono::milliseconds most);
  void Wait();
  bool busy() { return !WaitFor(std::chrono::milliseconds(0)); }

  // The first failure of any write. Errors as CheckpointDirectory::Save.
  const absl::Status& status() const { return status_; }

  const CheckpointDirectory& directory() const { return directory_; }

 private:
  CheckpointDirectory directory_;  // used by the thread while it writes
  const std::string job_;
  absl::Status status_;
  TensorCopies copies_;
  struct Sharded {
    std::int64_t step = 0;
    std::optional<std::int64_t> best;
    ShardIndex index;
    FileFacts written;  // used by the thread while it writes the shard
  };
  Sharded sharded_;                    // the checkpoint in shards in progress
  std::future<absl::Status> writing_;  // its destructor waits, hence last
};

// One rank's part in checkpoints. Every rank must call the methods that say so at the same step,
// and gets the same error; they throw what c10d throws. One thread.
class Saver {
 public:
  // Writes into this rank's directory in `start`, if it has one. `job` must outlive this object.
  Saver(const Job& job, StartPoint&& start);

  // Whether any rank writes checkpoints.
  bool saves() const { return !owners_.empty(); }
  bool in_shards() const { return in_shards_; }

  // Saves a checkpoint of `strategy` after `state`, in the directory of each owner, unless there
  // are none or they already have it. `lr` is the learning rate of the next step. Waits, as
  // Finish() does, for the previous one, and for the copying; the writing continues in the
  // background, and its failure is returned by the next call of either. Every rank calls it.
  absl::Status Save(Strategy& strategy, const TrainState& state, double lr);

  // Call it once no rank is writing: starts writing the index of shards that have none yet. Every
  // rank calls it.
  absl::Status Index();
  bool needs_index() const { return shards_open_; }

  // Waits until no rank is writing, and shards have their index. `step` is the newest, for the
  // beats meanwhile. Every rank calls it.
  absl::Status Finish(std::int64_t step);

  // On this rank only: whether a write is in progress; whether one has failed.
  bool busy() { return writer_ && writer_->busy(); }
  bool failed() const { return writer_ && !writer_->status().ok(); }
  void Wait();

  // Where this rank's checkpoint of step `step` is; empty if it writes none.
  std::string PathOf(std::int64_t step) const;

 private:
  bool IsOwner() const;  // of a directory: the first of its team
  bool WritesShard(std::int64_t step) const;
  bool WritesIndex(std::int64_t step) const;
  Share OwnShare() const;

  const Job& job_;
  const bool in_shards_;
  const std::vector<int> owners_;
  const std::vector<int> team_;                  // see CheckpointOwners
  const std::optional<std::int64_t> kept_step_;  // of the one that this team had at the start
  std::optional<DirectoryLock> lock_;            // of the directory, on its owner
  std::optional<CheckpointWriter> writer_;       // if this rank writes any
  std::int64_t saved_step_ = -1;  // of the newest that all owners have or are writing
  bool shards_open_ = false;      // shards are being written and have no index yet
};

// Waits until something is done on every rank; meanwhile beats continue, and ranks stay in touch,
// so it may take longer than --timeout. `done` waits for this rank's part, at most as long as its
// argument, and returns whether it is done; it is called again until it is. `step` is for the
// beats. Every rank calls it. Throws what c10d throws.
void AwaitAll(const Job& job, std::int64_t step,
              const std::function<bool(std::chrono::milliseconds)>& done);

}  // namespace muster::trainer
