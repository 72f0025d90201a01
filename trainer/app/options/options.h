// The options of muster-train: its command line, and the file given with --config.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "absl/status/statusor.h"

#include "trainer/app/options/settings.h"
#include "trainer/comm/host/transport.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/io/state_dict.h"
#include "trainer/models/registry.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/ddp.h"
#include "trainer/pipeline/mesh.h"
#include "trainer/quant/qat_options.h"

namespace muster::trainer {

// How the work of a step is divided.
enum class Parallel {
  kDdp,      // each rank takes a part of the batch; gradients are averaged
  kAverage,  // each rank trains alone; parameters are averaged periodically
  kThreads,  // one process with several threads, each with a replica of the model
};

// What stays constant if the number of ranks changes.
enum class OnResize {
  kKeepBatch,   // the global batch
  kScaleBatch,  // the batch of each rank
};

// What happens if a loss, a gradient or a parameter is NaN or infinite.
enum class OnNonFinite {
  kStop,    // the training ends; the newest checkpoint is from before
  kSkip,    // the optimizer skips steps whose gradient is not finite
  kIgnore,  // nothing; but parameters that are not finite are not saved
};

// What drives the ranks of a pipeline.
enum class Driver {
  kSchedule,  // its schedule
  kRpc,       // the first rank of the pipeline, in GPipe's order
};

// The settings of a mesh, apart from its sizes.
struct MeshOptions {
  // nullopt: no mesh; each rank has the whole model.
  std::optional<MeshRequest> request;
  // For a pipeline: MakeSchedule()'s name, the model parts per rank, and the micro-batches per
  // rank's share of a batch; 0: the usual number for the schedule and the ranks.
  std::string schedule = "1f1b";
  Driver driver = Driver::kSchedule;
  int chunks = 0;
  int micro_batches = 0;
  // The stages at which parts begin, except the first; empty: parts of about equal cost.
  std::vector<std::string> cuts;
  // Whether tensor ranks also split the sequence, in layers that are not split themselves.
  bool splits_sequence = false;
};

struct ParallelOptions {
  Parallel kind = Parallel::kDdp;
  MeshOptions mesh;
  // What data ranks share instead of replicating: 1 the optimizer's state, 2 gradients as well, 3
  // parameters as well; 0: nothing, or with a mesh of other dimensions the optimizer's state.
  int zero = 0;
  DdpOptions ddp;
  bool sync_batch_norm = false;
  // For kAverage: the number of steps between averages.
  std::int64_t average_every = 1;
  // For kThreads.
  int replicas = 2;
  Comm comm = Comm::kAuto;
  std::chrono::seconds timeout{300};

  // Whether some rank has less than a complete replica of the model.
  bool shares_model() const { return mesh.request || zero > 0; }
};

enum class CheckpointFormat {
  kWhole,   // one file of torch.save, written by one rank
  kShards,  // a directory of safetensors with an index: each rank writes one
};

struct CheckpointOptions {
  // Where rank 0 writes the final state dict; empty: nowhere.
  std::string final_path;
  // Where rank 0 writes it as safetensors; empty: nowhere.
  std::string export_path;

  // The directory for saving and finding checkpoints; empty: none are saved.
  std::string directory;
  std::int64_t every_steps = 100;  // and after each epoch; 0: only after each epoch
  CheckpointFormat format = CheckpointFormat::kWhole;
  int keep = 3;
  bool keep_best = false;  // additionally, the one with the best test loss
  // "auto": resume from the newest checkpoint in `directory`, if any. "none": start from the
  // beginning. Otherwise the file, or directory of shards, to resume from.
  std::string resume = "auto";
  OnResize on_resize = OnResize::kKeepBatch;

  // A state dict, checkpoint or safetensors file, or a directory of shards, with the initial
  // parameters; empty: none.
  std::string init_from;
  LoadStateDictOptions init;
};

struct ReportOptions {
  std::int64_t every_steps = 0;  // 0: twenty times per epoch
  // Paths; empty: not written.
  std::string loss_log;     // one line per step
  std::string metrics;      // one JSON object per report
  std::string tensorboard;  // a directory for event files
  std::string trace;        // Chrome trace of the first `trace_steps` steps
  std::int64_t trace_steps = 20;
  bool profile = false;  // print a table of phases at the end
};

// The command line, validated as far as possible without the environment. The same on every rank.
struct Options {
  std::string program = "muster-train";  // the registry's
  DataRecipe data_set;
  DataOptions data;
  int loader_threads = 1;

  ModelRecipe model;
  // The names of each model's own flags, by model: "--width".
  std::map<std::string, std::vector<std::string>> flags_of_models;
  // Of the data, which the model must fit. Until the data is open, taken from flags.
  DataShape shape;
  // With the channels innermost, convolutions and pooling are about twice as fast on CPUs.
  bool channels_last = true;
  // The type of parameters, gradients and losses. float64 takes twice the time, but makes rounding
  // negligible when loss curves are compared.
  c10::ScalarType dtype = c10::ScalarType::Float;
  bool bf16 = false;  // autocast
  bool fp16 = false;  // the same, only on GPUs
  bool tf32 = false;  // see SetPrecision()
  bool deterministic = false;
  // The initial factor for losses, so that small gradients do not vanish in float16; 0: 65536 with
  // `fp16`, else no scaling.
  double loss_scale = 0;
  std::int64_t loss_scale_window = 2000;  // see LossScaler

  // The type for autocast; nullopt: none.
  std::optional<c10::ScalarType> autocast_type() const;
  bool scales_losses() const { return fp16 || loss_scale > 0; }

  int epochs = 1;
  // Samples in one step, over all ranks together; at least one per rank, except in a run that
  // resumes with another number of ranks. Shares of ranks differ by at most one.
  std::int64_t batch_size = 128;
  // The number of passes in which a rank processes its share of a batch. They add up to the
  // gradient of the whole share, apart from rounding, unless the model has batch norm, which
  // normalizes each pass separately.
  std::int64_t accumulate = 1;
  // Recompute activations in the backward pass instead of keeping them (ModelOptions).
  bool recompute = false;
  QatOptions qat;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;  // total_steps is set once the data is open
  double clip_norm = 0;      // 0: do not clip
  double ema_decay = 0;      // of the parameters' moving average; 0: keep none
  OnNonFinite on_nonfinite = OnNonFinite::kStop;
  // For the initial parameters, the order of the samples, their augmentation, and the random
  // numbers of the training (RandomPlace).
  std::uint64_t seed = 0;
  // End the training after this many steps; 0: no limit.
  std::int64_t max_steps = 0;
  bool evaluate = true;
  // End the training after this many tests in a row without improvement; 0: never.
  int early_stop = 0;

  ParallelOptions parallel;
  CheckpointOptions checkpoint;
  ReportOptions report;
  // Threads for one rank's tensor operations; 0: see DefaultThreads().
  int threads = 0;

  // Every flag with its value, in the order of --help.
  std::vector<Setting> settings;

  // The text to print if --help or --version was given; ignore all other members then.
  std::string help;
};

// Parses the command line, whose first word is the program's name, and the file given with
// --config. The command line takes precedence over the file. Flags of the registry's models are
// parsed into what the chosen model is made of. kInvalidArgument and one sentence for a mistake in
// either. `other_flags`, a command's own flags without dashes, may be suggested for unknown ones,
// too.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Registry& registry = BuiltInRecipes(),
                                     const std::vector<std::string>& other_flags = {});

// The same, before more flags are added: checks each flag by itself, but not their combination.
absl::StatusOr<Options> ParseFlags(int argc, const char* const* argv, const Registry& registry,
                                   const std::vector<std::string>& other_flags = {});

// The flags that determine the model's parameters, as a user would give them: {"--width", "128"},
// {"--context", "128"} and so on for a GPT. Two models with the same name and flags, fitted to the
// same data, can load each other's parameters.
std::vector<ModelFlag> ModelFlags(const Options& options);

// kInvalidArgument unless `batch_size` has a sample for each of `parts` ranks.
absl::Status CheckBatchSize(std::int64_t batch_size, int parts);

// kInvalidArgument when the options cannot be used with this world size. With a checkpoint
// directory it leaves the batch size to FindStart(), which knows whether the run resumes.
absl::Status CheckWorld(const Options& options, int world_size);

}  // namespace muster::trainer
