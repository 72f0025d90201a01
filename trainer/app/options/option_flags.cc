#include "trainer/app/options/option_flags.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"

#include "trainer/app/options/command_flags.h"
#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

constexpr auto kMany = std::numeric_limits<std::int64_t>::max();
constexpr double kLargestBeta = 0.9999999;  // below 1

using Kind = DataShape::Kind;

// One of the names of `recipes`.
template <typename Recipes>
void AddRecipeChoice(const FlagGroup& group, const std::string& flag, const Recipes& recipes,
                     std::string& value, const std::string& description) {
  std::map<std::string, std::string> names;
  for (const auto& recipe : recipes) names[recipe.name] = recipe.name;
  if (names.size() > 1) group.Choice(flag, value, names, description);
}

void AddTextFlags(const FlagGroup& group, DataOptions& data) {
  group.Path("--tokenizer", data.tokenizer,
             "A tokenizer.json (byte-level BPE) for text; without, a token is a byte");
  group.Number("--vocabulary", data.vocabulary, std::int64_t{0}, std::int64_t{1} << 32,
               "How many different tokens there are; 0: as many as --tokenizer has");
  group.Choice(
      "--token-type", data.token_type,
      {{"auto", std::nullopt}, {"uint16", TokenType::kUint16}, {"uint32", TokenType::kUint32}},
      "How --dataset tokens are written; auto: uint16 if the vocabulary allows it");
  group.Number("--context", data.context, 1, 1 << 16, "Length of a window of text, in tokens");
}

void AddOwnDataFlags(const FlagGroup& group, DataOptions& data) {
  group.Number("--image-size", data.image_size, std::int64_t{1}, std::int64_t{4096},
               "For --dataset folder: height and width to which images are brought");
  group.Text("--target", data.target, "For --dataset csv: the column that holds the classes")
      ->type_name("COLUMN")
      ->default_str("none");
}

void AddDataFlags(CLI::App& app, const Registry& registry, Options& o, RawOptions& raw,
                  SettingSource& settings) {
  const FlagGroup group(app, "Data", &settings);
  const bool own = registry.data_sets.size() == 1;
  AddRecipeChoice(group, "--dataset", registry.data_sets, raw.data_set,
                  "generated: made up, images or text as the model needs; else read --data. With "
                  "--model gpt text, unless given");
  group.Paths(
      "--data", o.data.paths,
      own ? "Files or directories to learn from; may be repeated"
          : "Directory of (Fashion-)MNIST's four IDX files, plain or .gz; directory of CIFAR-10's "
            "binary files; directory of train/CLASS/ and val/CLASS/, or of CLASS/, with JPEG and "
            "PNG files; a CSV file; or files, as text or tokens, and directories of them; may be "
            "repeated");
  group.Paths(
      "--test-data", o.data.test_paths,
      own ? "Files or directories to measure on; may be repeated"
          : "What to measure on: files of text or tokens, a directory of CLASS/, a CSV file; "
            "else val.bin beside train.bin or val/ beside train/, else a tenth of --data");
  if (!own) AddOwnDataFlags(group, o.data);
  if (registry.Takes(Kind::kText)) AddTextFlags(group, o.data);
  group.Number("--loader-threads", o.loader_threads, 0, 256,
               "Threads that prepare batches ahead; 0: training does it itself");
  if (!registry.Takes(Kind::kImages)) return;
  group.Switch("flip", o.data.augmentation.flip, "Mirror training images at random");
  group.Number("--crop-padding", o.data.augmentation.crop_padding, 0, 16,
               "Shift training images at random by up to this many pixels");
}

void AddModelFlags(CLI::App& app, const Registry& registry, Options& o, RawOptions& raw,
                   SettingSource& settings) {
  const FlagGroup group(app, "Model", &settings);
  AddRecipeChoice(group, "--model", registry.models, raw.model,
                  "The network to train. With --dataset csv mlp, unless given");
  group.Choice("--dtype", o.dtype,
               {{"float32", c10::ScalarType::Float}, {"float64", c10::ScalarType::Double}},
               "Type of the parameters");
  group.Switch("bf16", o.bf16, "Compute in bfloat16 where possible (autocast)");
  group.Switch("fp16", o.fp16, "The same in float16, on a GPU; scales losses");
  group.Switch("tf32", o.tf32,
               "On a GPU: multiply float32 in TensorFloat-32, faster and less exact");
  group.Switch("deterministic", o.deterministic,
               "On a GPU: use only deterministic operations; slower");
  if (registry.Takes(Kind::kImages)) {
    group.Switch("channels-last", o.channels_last, "Keep images with their channels innermost");
  }
}

// The flags of the registry's models.
absl::Status AddRecipeFlags(CLI::App& app, const Registry& registry, Options& o,
                            SettingSource& settings) {
  const FlagGroup group(app, "Model", &settings);
  for (const ModelRecipe& model : registry.models) {
    GroupFlags flags(group, o.flags_of_models[model.name], registry.program);
    if (model.add_flags) model.add_flags(flags);
    if (!flags.status().ok()) return flags.status();
  }
  return absl::OkStatus();
}

void AddTrainingFlags(CLI::App& app, Options& o, SettingSource& settings) {
  const FlagGroup group(app, "Training", &settings);
  group.Number("--epochs", o.epochs, 1, 1'000'000, "Passes over the training samples");
  group.Number("--batch-size", o.batch_size, std::int64_t{1}, std::int64_t{1} << 30,
               "Samples in a step, over all ranks together; at least one for each");
  group.Number(
      "--accumulate", o.accumulate, 1, 1'000'000,
      "Parts in which a rank computes its share of a batch, to save memory. Batch norm sees one "
      "part at a time");
  group.Switch("recompute", o.recompute,
               "Compute a stage's activations again in the backward pass instead of keeping them");
  group.Switch("qat", o.qat.on,
               "Train for weights and activations of 8 bits, and measure the model in them");
  group.Number("--qat-observe-epochs", o.qat.observe_epochs, std::int64_t{0}, kMany,
               "With --qat: first epochs, which observe ranges and round nothing");
  group.Number("--qat-freeze-epoch", o.qat.freeze_epoch, std::int64_t{0}, kMany,
               "With --qat: epochs after which ranges stay as they are; 0: two thirds of all");
  group.Number("--max-steps", o.max_steps, std::int64_t{0}, kMany,
               "End after this many steps; 0: no limit");
  group.Number("--seed", o.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
               "Seed of the parameters and of the order of the samples");
  group.Add(app.add_flag("--eval,!--no-eval", o.evaluate,
                         "Measure on the test samples after each epoch [on]"),
            [&o] { return SettingText(o.evaluate); });
  group.Number("--early-stop", o.early_stop, 0, 1'000'000,
               "End when this many tests in a row have not improved the test loss; 0: never");
  group.Number("--threads", o.threads, 0, 4096,
               "Threads of each rank; 0: OMP_NUM_THREADS, or a share of the processors");
}

void AddOptimizerFlags(CLI::App& app, Options& o, SettingSource& settings) {
  const FlagGroup group(app, "Optimizer", &settings);
  group.Choice("--algorithm", o.optimizer.kind,
               {{"sgd", OptimizerKind::kSgd}, {"adamw", OptimizerKind::kAdamW}},
               "What it computes");
  group.Choice("--optimizer", o.optimizer.path,
               {{"one-pass", OptimizerPath::kOnePass},
                {"foreach", OptimizerPath::kForeach},
                {"reference", OptimizerPath::kReference}},
               "How: fast, or bit for bit as Python does; foreach is what one-pass is on a GPU");
  group.Number("--lr", o.schedule.learning_rate, 0.0, 1e6, "Learning rate");
  app.get_option("--lr")->default_str("0.02; adamw: 0.001");
  group.Number("--momentum", o.optimizer.momentum, 0.0, 1.0, "For sgd");
  group.Switch("nesterov", o.optimizer.nesterov, "For sgd: Nesterov momentum");
  group.Number("--beta1", o.optimizer.beta1, 0.0, kLargestBeta,
               "For adamw: decay of the mean of gradients");
  group.Number("--beta2", o.optimizer.beta2, 0.0, kLargestBeta,
               "For adamw: decay of the mean of their squares; 0.95 is usual for GPTs");
  group.Number("--eps", o.optimizer.epsilon, 0.0, 1.0,
               "For adamw: added to the root that steps are divided by");
  group.Number("--weight-decay", o.optimizer.weight_decay, 0.0, 1e6, "Weight decay");
  group.Switch("decay-vectors", o.optimizer.decay_vectors,
               "Apply weight decay to biases and normalization weights as well");
  group.Choice("--schedule", o.schedule.kind,
               {{"constant", ScheduleKind::kConstant},
                {"step", ScheduleKind::kStep},
                {"cosine", ScheduleKind::kCosine}},
               "How the learning rate changes after the warm-up");
  group.Number("--warmup-steps", o.schedule.warmup_steps, std::int64_t{0}, kMany,
               "Steps in which the learning rate rises to --lr");
  group.Number("--warmup-start", o.schedule.warmup_start, 1e-6, 1.0,
               "With --warmup-steps: what part of --lr the first step has");
  group.Number("--lr-step-size", o.schedule.step_size, std::int64_t{1}, kMany,
               "With --schedule step: steps between two drops");
  group.Number("--lr-gamma", o.schedule.gamma, 0.0, 1.0,
               "With --schedule step: factor of each drop");
  group.Number("--lr-min", o.schedule.minimum, 0.0, 1e6,
               "With --schedule cosine: the final learning rate");
  group.Number("--clip", o.clip_norm, 0.0, 1e9,
               "Scale gradients down to this norm over all parameters; 0: never");
  group.Number("--ema", o.ema_decay, 0.0, 0.9999999,
               "Decay of a moving average of the parameters, which is tested and written at the "
               "end; 0: none");
  group.Number(
      "--loss-scale", o.loss_scale, 0.0, 0x1p127,
      "Multiply losses by this for the backward pass: halved when a gradient overflows; 0: "
      "65536 with --fp16, else not");
  group.Number("--loss-scale-window", o.loss_scale_window, std::int64_t{1}, kMany,
               "Steps without an overflow after which the scale is doubled");
  group.Choice("--on-nonfinite", o.on_nonfinite,
               {{"stop", OnNonFinite::kStop},
                {"skip", OnNonFinite::kSkip},
                {"ignore", OnNonFinite::kIgnore}},
               "When a loss or a gradient is NaN or infinite: end the training, skip the "
               "optimizer's step, or go on");
}

void AddParallelFlags(CLI::App& app, Options& o, RawOptions& raw, SettingSource& settings) {
  const FlagGroup group(app, "Ranks", &settings);
  ParallelOptions& p = o.parallel;
  group.Choice(
      "--parallel", p.kind,
      {{"ddp", Parallel::kDdp}, {"average", Parallel::kAverage}, {"threads", Parallel::kThreads}},
      "Average gradients; average parameters; or replicas in threads of one process");
  group.Choice(
      "--comm", p.comm,
      {{"auto", Comm::kAuto}, {"gloo", Comm::kGloo}, {"nccl", Comm::kNccl}, {"shm", Comm::kShm}},
      "How ranks exchange gradients; shm: shared memory inside a host");
  group.Number("--timeout", raw.timeout_seconds, 1, 1'000'000, "Seconds to wait for another rank");
  group.Switch("sync-bn", p.sync_batch_norm, "Normalize batches over all ranks together");
  group.Choice(
      "--comm-hook", p.ddp.comm_hook,
      {{"none", CommHook::kNone}, {"fp16", CommHook::kFloat16}, {"bf16", CommHook::kBFloat16}},
      "How gradients are compressed on their way");
  group.Number("--bucket-mb", p.ddp.bucket_cap_mb, 0.001, 1e6,
               "Size of a bucket: the gradients that are sent together");
  group.Number("--first-bucket-mb", p.ddp.first_bucket_mb, 0.001, 1e6, "Size of the first bucket");
  group.Switch("bucket-view", p.ddp.gradient_as_bucket_view,
               "Let gradients be views into the buckets");
  group.Switch("find-unused-parameters", p.ddp.find_unused_parameters,
               "Detect in each step which parameters have no gradient");
  group.Switch("static-graph", p.ddp.static_graph, "Every step uses the same parameters");
  group.Switch("broadcast-buffers", p.ddp.broadcast_buffers,
               "Copy the buffers of rank 0 to all ranks before each step");
  group.Number("--average-every", p.average_every, std::int64_t{1}, kMany,
               "With --parallel average: steps between two averages");
  group.Number("--replicas", p.replicas, 1, 1024, "With --parallel threads: how many");
}

// Flags for sharing one model between ranks.
void AddMeshFlags(CLI::App& app, Options& o, RawOptions& raw, SettingSource& settings) {
  const FlagGroup group(app, "Mesh", &settings);
  MeshOptions& m = o.parallel.mesh;
  group
      .Text("--mesh", raw.mesh,
            "Ranks that share a model, as pp=2,dp=2,tp=2: pipeline x data x tensor; what is left "
            "out is 1, and dp what is left. auto: what memory allows. Else each rank has the "
            "whole model")
      ->type_name("SIZES")
      ->default_str("none");
  group.Number("--zero", o.parallel.zero, 0, 3,
               "What data ranks shard instead of each keeping all of it. 1: the optimizer's state; "
               "2: gradients as well; 3: parameters as well; 0: nothing, or with --mesh as 1");
  std::map<std::string, std::string> schedules;
  for (const std::string& name : ScheduleNames()) schedules[name] = name;
  group.Choice("--pipeline-schedule", m.schedule, schedules,
               "The order of work in a pipeline: `schedule` shows it");
  group.Choice("--pipeline-driver", m.driver,
               {{"schedule", Driver::kSchedule}, {"rpc", Driver::kRpc}},
               "What decides a rank's next step: its schedule, or the first rank of the pipeline "
               "by remote calls in gpipe's order");
  group.Number("--micro-batches", m.micro_batches, 0, 1 << 16,
               "Parts in which a share of a batch goes through a pipeline; 0: four for each rank "
               "of it");
  group.Number("--pipeline-chunks", m.chunks, 0, 256,
               "Parts of the model that each rank of a pipeline has; 0: 2 with --pipeline-schedule "
               "interleaved, else 1");
  group
      .Text("--pipeline-cuts", raw.cuts,
            "Stages with which the parts of a pipeline begin, but the first, as "
            "transformer.h.2,transformer.h.4; else parts of about the same cost")
      ->type_name("STAGES")
      ->default_str("by cost");
  group.Switch("sequence-parallel", m.splits_sequence,
               "Between the layers that tensor ranks share, each has a part of the sequence: less "
               "memory");
}

void AddCheckpointFlags(CLI::App& app, Options& o, SettingSource& settings) {
  const FlagGroup group(app, "Checkpoints", &settings);
  CheckpointOptions& c = o.checkpoint;
  group.Path("--checkpoint", c.final_path, "Where rank 0 writes the state dict at the end");
  group.Path("--export", c.export_path, "Where rank 0 also writes the parameters, as safetensors");
  group.Path("--checkpoint-dir", c.directory, "Directory of checkpoints to resume from");
  group.Number("--checkpoint-every", c.every_steps, std::int64_t{0}, kMany,
               "Steps between two checkpoints; 0: only after each epoch");
  group.Choice("--checkpoint-format", c.format,
               {{"whole", CheckpointFormat::kWhole}, {"shards", CheckpointFormat::kShards}},
               "One file, written by one rank, or a directory in which each rank writes a part");
  group.Number("--keep", c.keep, 1, 1'000'000, "How many checkpoints to keep");
  group.Switch("keep-best", c.keep_best, "Keep the checkpoint with the best test loss as well");
  group.Text(
      "--resume", c.resume,
      "Where a job starts. auto: from the newest in --checkpoint-dir, if any; none: from the "
      "beginning; or from this checkpoint, or the newest of this directory, or its latest or best. "
      "After a restart: from what the job has saved");
  group.Choice(
      "--on-resize", c.on_resize,
      {{"keep-batch", OnResize::kKeepBatch}, {"scale-batch", OnResize::kScaleBatch}},
      "When the number of ranks has changed: keep the global batch, or the batch of each rank");
  group.Path("--init-from", c.init_from,
             "Take the initial parameters from a state dict, a checkpoint or a .safetensors file");
  group.Switch("init-strict", c.init.strict, "All names and shapes in it must match");
  group.Choice("--init-prefix", c.init.prefix,
               {{"auto", ModulePrefix::kAutomatic},
                {"add", ModulePrefix::kAdd},
                {"strip", ModulePrefix::kStrip},
                {"as-is", ModulePrefix::kAsIs}},
               "What to do about names that begin with \"module.\"");
}

void AddReportFlags(CLI::App& app, Options& o, SettingSource& settings) {
  const FlagGroup group(app, "Reports", &settings);
  ReportOptions& r = o.report;
  group.Number("--report-every", r.every_steps, std::int64_t{0}, kMany,
               "Steps between two reports; 0: twenty per epoch");
  group.Path("--loss-log", r.loss_log, "Where rank 0 writes each step's loss");
  group.Path("--metrics", r.metrics, "Where rank 0 writes a JSON object for each report");
  group.Path("--tensorboard", r.tensorboard,
             "Directory where rank 0 writes events for TensorBoard");
  group.Path("--trace", r.trace, "Where a Chrome trace of every rank is written");
  group.Number("--trace-steps", r.trace_steps, std::int64_t{1}, kMany,
               "Steps in the trace, from the first on");
  group.Switch("profile", r.profile, "Show at the end where the time went");
}

}  // namespace

absl::Status AddFlags(CLI::App& app, const Registry& registry, Options& options, RawOptions& raw,
                      SettingSource& settings) {
  AddDataFlags(app, registry, options, raw, settings);
  AddModelFlags(app, registry, options, raw, settings);
  AddTrainingFlags(app, options, settings);
  AddOptimizerFlags(app, options, settings);
  AddParallelFlags(app, options, raw, settings);
  AddMeshFlags(app, options, raw, settings);
  AddCheckpointFlags(app, options, settings);
  AddReportFlags(app, options, settings);
  return AddRecipeFlags(app, registry, options, settings);
}

}  // namespace muster::trainer
