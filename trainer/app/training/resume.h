// Finds the checkpoint to resume from, and loads initial parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/training/start.h"
#include "trainer/comm/group.h"
#include "trainer/io/state_dict.h"
#include "trainer/runtime/named_tensor.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {

// A checkpoint, and where it was found.
struct Resumable {
  std::string place;  // "run1/step-000000000100.pt", "run1/step-000000000100 of rank 2"
  Value snapshot;
};

// The starting point of this job.
struct ResumePoint {
  std::optional<Resumable> checkpoint;  // nullopt: the beginning
  std::string job;                      // this job's name, for the checkpoints that it saves
  // That checkpoint's step, by its name, if it is in the directory that this rank writes to; else
  // nullopt.
  std::optional<std::int64_t> kept_step;
  bool kept_everywhere = false;  // whether all owners have it
  // The job that saved it, if known: this is in its directory, which then has others of its line.
  std::string maker;
  bool searched = false;              // found by search: the user did not name it
  std::vector<std::string> warnings;  // sentences for the user; the same on every rank
};

// Finds it according to options.resume. The owners report what is in their directories, all ranks
// choose alike (ChooseCheckpoint), and the rank that has the chosen checkpoint, or rank 0 for a
// file, reads it and sends it to the others: ranks cannot disagree, whatever is on their own disks.
// Every rank must call it. All return the same error: kInvalidArgument if the requested checkpoint
// is missing, or all are damaged; kUnavailable if reading fails. Throws what c10d throws.
absl::StatusOr<ResumePoint> FindResumePoint(const CheckpointOptions& options,
                                            const Environment& env, const CheckpointOwners& owners,
                                            Group& group);

// Loads options.init_from, a torch.save or safetensors file or a directory of shards, into
// `parameters` (and buffers). Call it on rank 0 only: the others receive rank 0's parameters before
// the first step. Returns a sentence for the start-up lines, empty when options.init_from is.
// kInvalidArgument when the file is missing, damaged or does not fit, kUnavailable when reading
// fails.
absl::StatusOr<std::string> InitFrom(const CheckpointOptions& options,
                                     const std::vector<NamedTensor>& parameters);

}  // namespace muster::trainer
