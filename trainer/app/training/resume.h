// Finds the checkpoint to resume from, and loads initial parameters.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// Chooses the checkpoint to resume from.

// The contents of one rank's checkpoint directory.
struct DirectoryReport {
  int rank = 0;
  std::string job;                     // the last job that used it; empty: unknown
  std::optional<std::int64_t> latest;  // the step named by its file `latest`
  std::optional<std::int64_t> step;    // of its newest complete checkpoint, not after `latest`
};

// What to resume from, and for which job.
struct ResumeRequest {
  bool automatic = true;   // --resume auto, rather than none or a file
  bool restarted = false;  // earlier workers of this job have run before
  std::string_view run_id;
};

struct ResumeChoice {
  std::string job;          // this job's name; empty: no rank knows it, and it needs one
  std::optional<int> rank;  // the rank whose checkpoint is used; nullopt: none
  std::int64_t step = 0;    // of that checkpoint
  std::string maker;        // the job that saved it; empty: unknown
  // The reporting ranks that have that checkpoint.
  std::vector<int> holders;
  // Ranks with a checkpoint of a later step that belongs to an earlier job.
  std::vector<int> passed_over;
};

// A job's first workers do as requested. With --resume auto they take the newest checkpoint: of the
// directories that have one, that of the most recent job, and the highest step within that job.
//
// After a restart only directories that this job has used before count, whatever the request: its
// name is the newest in `reports` that has its run id. So a job that started from scratch or from a
// file continues from what it has saved since, and leftovers of another job on a new node are not
// used. If --resume is not auto, a checkpoint that `latest` does not name does not count either: it
// may be older than the job. If no directory has this job's name, only those without any name are
// considered.
ResumeChoice ChooseCheckpoint(const std::vector<DirectoryReport>& reports,
                              const ResumeRequest& request);

// Names the job that uses a checkpoint directory.

// A run id does not distinguish one job from the next of the same name, and a restarted worker does
// not know when its job began. So the first workers of a job name it, and leave the name in the
// directories, where later workers find it.

// A unique name for a job that begins `now`: names of later jobs sort after those of earlier ones.
// One line of at most 128 bytes.
std::string MakeJobName(std::chrono::system_clock::time_point now, std::string_view run_id);

// Whether this is the name of a job with run id `run_id`. False for an empty name.
bool IsOfRun(std::string_view job, std::string_view run_id);

}  // namespace muster::trainer
