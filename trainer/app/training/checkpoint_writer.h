// Writes checkpoints while the training goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/file_facts.h"
#include "trainer/io/shards/shard_index.h"
#include "trainer/io/tensor_copies.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// Which of the shards of a checkpoint a rank writes.
struct Share {
  int shard = 0;
  int shards = 1;
};

// Copies what is to be saved, and writes it on a thread of its own: a step waits for the copying
// alone. One checkpoint at a time. Needs memory for what it writes, one checkpoint or one shard,
// besides the model. All methods are called from one thread.
class CheckpointWriter {
 public:
  // Writes into `directory`, as job `job` (CheckpointDirectory::Save).
  CheckpointWriter(CheckpointDirectory directory, std::string job);
  // Waits until nothing is being written.
  ~CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Begins to write `snapshot` as the checkpoint after step `step`, once the one before is written;
  // its tensors may change when this returns. Does nothing after a failure. Throws c10::Error when
  // there is no memory for the copy. `best` as in CheckpointDirectory::Save.
  void Start(std::int64_t step, const Value& snapshot,
             std::optional<std::int64_t> best = std::nullopt);

  // The same for a checkpoint in shards, which takes three steps, as each rank writes one. One rank
  // prepares (CheckpointDirectory::PrepareShards; errors as there).
  absl::Status PrepareShards(std::int64_t step) const { return directory_.PrepareShards(step); }
  // Then each begins to write its own, as Start does; all have the same snapshot.
  void StartShard(std::int64_t step, const Value& snapshot, const Share& share,
                  std::optional<std::int64_t> best = std::nullopt);
  // What this rank has written, once nothing is being written; the first failure if there was one.
  absl::StatusOr<FileFacts> shard() const;
  // Then one begins to write the index, from what the ranks have written, in the order of shards.
  void StartIndex(const std::vector<FileFacts>& files);

  // Begins to mark the checkpoint of step `step`, once it is written, as the best
  // (CheckpointDirectory::MarkBest).
  void StartBest(std::int64_t step);

  // Waits until nothing is being written, at most for `most`; says whether that is so.
  bool WaitFor(std::chrono::milliseconds most);
  void Wait();
  bool busy() { return !WaitFor(std::chrono::milliseconds(0)); }

  // The first failure of those that have been written. Errors as CheckpointDirectory::Save.
  const absl::Status& status() const { return status_; }

  const CheckpointDirectory& directory() const { return directory_; }

 private:
  CheckpointDirectory directory_;  // the thread's while something is being written
  const std::string job_;
  absl::Status status_;
  TensorCopies copies_;
  struct Sharded {
    std::int64_t step = 0;
    std::optional<std::int64_t> best;
    ShardIndex index;
    FileFacts written;  // the thread's while it writes the shard
  };
  Sharded sharded_;                    // the checkpoint in shards under way
  std::future<absl::Status> writing_;  // waits in its destructor, hence last
};

}  // namespace muster::trainer
