// Finds the checkpoint to resume from, and loads initial parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/app/options/options.h"
#include "trainer/app/training/checkpoint_owners.h"
#include "trainer/comm/group.h"
#include "trainer/io/value.h"
#include "trainer/named_tensor.h"
#include "trainer/worker/environment.h"

namespace muster::trainer {

// A checkpoint, and where it was found.
struct Resumable {
  std::string place;  // "run1/step-000000000100.pt", "run1/step-000000000100 of rank 2"
  Value snapshot;
};

// What this job starts from.
struct ResumePoint {
  std::optional<Resumable> checkpoint;  // nullopt: the beginning
  std::string job;                      // this job's name, for the checkpoints that it saves
  // The step of that checkpoint, by its name, if it is one of the directory that this rank writes
  // into; else nullopt.
  std::optional<std::int64_t> kept_step;
  bool kept_everywhere = false;  // whether all owners have it there
  // The job that has saved it, if that is known: whose directory says so has others of its line.
  std::string maker;
  bool searched = false;              // for the newest: nobody named it
  std::vector<std::string> warnings;  // sentences for the user; the same on every rank
};

// Finds it according to options.resume. The owners say what is in their directories, all ranks
// choose alike (ChooseCheckpoint), and the rank that has the chosen checkpoint, or rank 0 for a
// file, reads it and sends it to the others: ranks cannot disagree, whatever is on their own disks.
// Every rank must call it. All return the same error: kInvalidArgument when the requested
// checkpoint is missing, or all that there are are damaged; kUnavailable when reading fails. Throws
// what c10d throws.
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
