// Finds the checkpoint to resume from, and loads initial parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/comm/process_group.h"
#include "trainer/io/value.h"
#include "trainer/models/model.h"

namespace muster::trainer {

struct Resumable {
  std::string path;
  Value snapshot;
  // A sentence for each newer checkpoint that was skipped; only on rank 0.
  std::vector<std::string> warnings;
};

// The checkpoint to resume from according to options.resume and options.directory; nullopt: start
// from the beginning. Rank 0 alone chooses and reads it and sends it to the others, so that all
// ranks resume from the same step, whatever is on their own disks. Every rank must call it, and
// rank 0's error is returned on all: kInvalidArgument when the requested checkpoint is missing or
// damaged, kUnavailable when reading fails. Throws what c10d throws.
absl::StatusOr<std::optional<Resumable>> FindResumable(const CheckpointOptions& options,
                                                       ProcessGroup& group);

// Loads options.init_from, a torch.save or safetensors file, into `model`. Call it on rank 0 only:
// the others receive rank 0's parameters before the first step. Returns a sentence for the start-up
// lines, empty when options.init_from is. kInvalidArgument when the file is missing, damaged or
// does not fit, kUnavailable when reading fails.
absl::StatusOr<std::string> InitFrom(const CheckpointOptions& options, Model& model);

}  // namespace muster::trainer
