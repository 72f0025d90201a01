// Writes checkpoints while the training goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "trainer/io/checkpoint_directory.h"
#include "trainer/io/tensor_copies.h"
#include "trainer/io/value.h"

namespace muster::trainer {

// Copies what is to be saved, and writes it on a thread of its own: a step waits for the copying
// alone. One checkpoint at a time. Needs memory for one checkpoint besides the model. All methods
// are called from one thread.
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
  // there is no memory for the copy. Then marks the checkpoint of step `best` as the best
  // (CheckpointDirectory::MarkBest), if there is one.
  void Start(std::int64_t step, const Value& snapshot,
             std::optional<std::int64_t> best = std::nullopt);

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
  std::future<absl::Status> writing_;  // waits in its destructor, hence last
};

}  // namespace muster::trainer
