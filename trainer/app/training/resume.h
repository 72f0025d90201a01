// What a run goes on from, and what it takes its first parameters from.
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
  // Sentences about newer checkpoints that were passed over; on rank 0.
  std::vector<std::string> warnings;
};

// What options.resume and options.directory say to go on from; nullopt: begin anew. Rank 0 alone
// decides and reads, and the others get what it has read, so that all go on from the same step
// whatever each of them would find on its own disk. Every rank calls it, and all fail alike:
// kInvalidArgument when the checkpoint asked for is not there or damaged. Throws what c10d throws.
absl::StatusOr<std::optional<Resumable>> FindResumable(const CheckpointOptions& options,
                                                       ProcessGroup& group);

// Fills `model` from options.init_from, a file of torch.save or safetensors: on rank 0 only, since
// the others are given rank 0's parameters before the first step. Returns a sentence for the
// start-up lines, empty when nothing was asked for. kInvalidArgument when the file is missing,
// damaged or does not fit.
absl::StatusOr<std::string> InitFrom(const CheckpointOptions& options, Model& model);

}  // namespace muster::trainer
