// What the user asks muster-train to do: its command line, and the file given with --config.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <c10/core/ScalarType.h>

#include "absl/status/statusor.h"

#include "trainer/comm/comm.h"
#include "trainer/data/open_data.h"
#include "trainer/io/state_dict.h"
#include "trainer/models/model_options.h"
#include "trainer/optim/optimizer_options.h"
#include "trainer/optim/schedule.h"
#include "trainer/parallel/ddp.h"

namespace muster::trainer {

// How the work of a step is shared.
enum class Parallel {
  kDdp,      // each rank a part of the batch, gradients averaged over the ranks
  kAverage,  // each rank trains alone; parameters are averaged now and then
  kThreads,  // one process, a replica of the model in each of several threads
};

// What stays the same when the number of ranks changes.
enum class OnResize {
  kKeepBatch,   // the batch over all ranks together
  kScaleBatch,  // the part of each rank
};

struct ParallelOptions {
  Parallel kind = Parallel::kDdp;
  DdpOptions ddp;
  bool sync_batch_norm = false;
  // Of kAverage: the steps between two averages.
  std::int64_t average_every = 1;
  // Of kThreads.
  int replicas = 2;
  Comm comm = Comm::kAuto;
  std::chrono::seconds timeout{300};
};

struct CheckpointOptions {
  // Where rank 0 writes the state dict when the training is done.
  std::string final_path = "muster-train.pt";
  // Where it writes the same as safetensors; empty: nowhere.
  std::string export_path;

  // The directory of the checkpoints to go on from; empty: none.
  std::string directory;
  std::int64_t every_steps = 100;  // and after each epoch; 0: only then
  int keep = 3;
  // "auto": from the newest in `directory`, if there is one. "none": from the beginning. Else the
  // file to go on from.
  std::string resume = "auto";
  OnResize on_resize = OnResize::kKeepBatch;

  // A state dict, checkpoint or safetensors file that the parameters are taken from; empty: none.
  std::string init_from;
  LoadStateDictOptions init;
};

struct ReportOptions {
  std::int64_t every_steps = 0;  // 0: twenty times in an epoch
  // Files, and a directory; empty: not written.
  std::string loss_log;     // each step's loss, one line each
  std::string metrics;      // a JSON object for each report
  std::string tensorboard;  // directory of event files
  std::string trace;        // Chrome trace of the first `trace_steps` steps
  std::int64_t trace_steps = 20;
  bool profile = false;  // a table of phases at the end
};

// The command line, checked as far as it can be without the environment. The same on every rank.
struct Options {
  DataOptions data;
  int loader_threads = 1;

  // Channels innermost: on processors convolutions and pooling are about twice as fast.
  ModelOptions model = {.channels_last = true};
  // The type of parameters, gradients and losses. Twice the bits cost twice the time, and keep
  // rounding out of a comparison of loss curves.
  c10::ScalarType dtype = c10::ScalarType::Float;
  bool bf16 = false;  // autocast

  int epochs = 1;
  // Samples in one step, over all ranks together; the number of ranks divides it.
  std::int64_t batch_size = 128;
  // Parts in which a rank passes its share of a batch through the model.
  std::int64_t accumulate = 1;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;  // total_steps is set when the data is there
  double clip_norm = 0;      // 0: do not clip
  // Of the initial parameters and of the order of the samples.
  std::uint64_t seed = 0;
  // Random numbers drawn while training differ between ranks.
  bool seed_per_rank = false;
  // Ends the training after this many steps; 0: after the epochs.
  std::int64_t max_steps = 0;
  bool evaluate = true;

  ParallelOptions parallel;
  CheckpointOptions checkpoint;
  ReportOptions report;
  // Threads of one rank's tensor operations; 0: its share of the processors.
  int threads = 0;

  // Set when --help was given: the text to print. Nothing else is meant then.
  std::string help;
};

// Reads the command line, the program's name first, and the file it gives with --config; what the
// line says goes before what the file says. kInvalidArgument and one sentence for a mistake in
// either.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv);

// kInvalidArgument unless `world_size` ranks can share each batch evenly.
absl::Status CheckBatchSize(std::int64_t batch_size, int world_size);

// kInvalidArgument when the options ask for what this world size cannot do.
absl::Status CheckWorld(const Options& options, int world_size);

}  // namespace muster::trainer
