// Saves checkpoints of a training under way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "trainer/app/strategies/strategy.h"
#include "trainer/app/training/checkpoint_writer.h"
#include "trainer/app/training/job.h"
#include "trainer/app/training/start.h"
#include "trainer/app/training/train_state.h"

namespace muster::trainer {

// What one rank has to do with checkpoints. Every rank must call the methods that say so at the
// same step, and gets the same error; they throw what c10d throws. One thread.
class Saver {
 public:
  // Writes into the directory that `start` names for this rank, if it names one. `job` must outlive
  // this object.
  Saver(const Job& job, StartPoint&& start);

  // Whether any rank writes checkpoints.
  bool saves() const { return !owners_.empty(); }
  bool in_shards() const { return in_shards_; }

  // Saves a checkpoint of `strategy` after `state`, in the directory of each owner, unless there
  // are none or they have it. `lr` is the learning rate of the next step. Waits, as Finish() does,
  // for the one before, and for the copying; the writing goes on beside the training, and its
  // failure is returned by the next call of either. Every rank calls it.
  absl::Status Save(Strategy& strategy, const TrainState& state, double lr);

  // Once nothing is being written on any rank: begins to write the index of the shards, if there
  // are some without one. Every rank calls it.
  absl::Status Index();
  bool needs_index() const { return shards_open_; }

  // Waits until nothing is being written on any rank, and shards have their index. `step` is the
  // newest, for the beats meanwhile. Every rank calls it.
  absl::Status Finish(std::int64_t step);

  // Of this rank alone: whether something is being written; whether a write has failed.
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

// Waits until something is done on every rank; beats go on meanwhile, and ranks stay in touch, so
// that it may take longer than --timeout. `done` waits for this rank's part, at most as long as it
// is told, and says whether it is done; it is called again until it is. `step` is for the beats.
// Every rank calls it. Throws what c10d throws.
void AwaitAll(const Job& job, std::int64_t step,
              const std::function<bool(std::chrono::milliseconds)>& done);

}  // namespace muster::trainer
