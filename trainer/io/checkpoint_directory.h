// The checkpoints of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/value.h"

namespace muster::trainer {

// A directory with files step-000000001200.pt, each a checkpoint that torch.load reads, and a text
// file `latest` that names the one to go on from. Each of them appears whole or not at all, so a
// run may be killed, or the machine lose power, at any time. One process at a time may save (rank
// 0); any may load. Not thread-safe.
class CheckpointDirectory {
 public:
  // Makes the directory, and those above it, if it is not there. `keep`, 1 or more, is how many
  // checkpoints stay. kInvalidArgument when the directory cannot be made.
  static absl::StatusOr<CheckpointDirectory> Open(std::string path, int keep);

  // Writes `value` as the checkpoint after step `step` (0 or more), forced to the disk, and makes
  // it the latest. Then removes all but the `keep` newest; those of later steps, which a run leaves
  // that was set back, are not counted and stay. Returns the path of the new file.
  //
  // On an error (kUnavailable on a full disk, kInvalidArgument when the user has to change
  // something) the older checkpoints and `latest` are as they were. That old files cannot be
  // removed is no error.
  absl::StatusOr<std::string> Save(std::int64_t step, const Value& value);

  struct Loaded {
    std::int64_t step = 0;
    std::string path;
    Value value;
    // A sentence for each newer checkpoint that was passed over because it is not whole.
    std::vector<std::string> warnings;
  };

  // Reads the checkpoint that `latest` names or, if it is not whole, the newest whole one before
  // it; without `latest`, the newest whole one. nullopt when there is no checkpoint at all.
  // kInvalidArgument when there are some and none is whole; kUnavailable when reading fails.
  absl::StatusOr<std::optional<Loaded>> LoadLatest() const;

  // The steps for which there is a file, whole or not, in ascending order.
  std::vector<std::int64_t> Steps() const;
  std::string PathOf(std::int64_t step) const;
  const std::string& path() const { return path_; }

 private:
  CheckpointDirectory(std::string path, int keep) : path_(std::move(path)), keep_(keep) {}
  std::optional<std::int64_t> LatestStep() const;  // as the file `latest` says
  void RemoveOld(std::int64_t newest) const;

  std::string path_;
  int keep_;
};

}  // namespace muster::trainer
