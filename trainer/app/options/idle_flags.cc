#include "trainer/app/options/idle_flags.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using Kind = DataShape::Kind;

// Reasons why flags have no effect, by flag: "with --algorithm adamw". Only the first reason for a
// flag is reported.
class Reasons {
 public:
  void Add(bool idle, const std::string& why, const std::vector<std::string>& flags) {
    if (!idle) return;
    for (const std::string& flag : flags) why_.emplace(flag, why);
  }
  const std::string* Of(const std::string& flag) const {
    const auto found = why_.find(flag);
    return found == why_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, std::string> why_;
};

void AddForData(const Options& options, Reasons& reasons) {
  const std::string set = absl::StrCat("with --dataset ", options.data_set.name);
  const bool own = options.data_set.title == "data of its own";
  const bool made_up = options.data_set.name == "generated";
  reasons.Add(made_up, absl::StrCat(set, ", which is made up"), {"--data", "--test-data"});
  reasons.Add(!options.evaluate, "with --no-eval", {"--test-data"});
  if (!own) {
    reasons.Add(options.data_set.name != "folder", absl::StrCat(set, "; it is for folder"),
                {"--image-size"});
    reasons.Add(options.data_set.name != "tokens", absl::StrCat(set, "; it is for tokens"),
                {"--token-type"});
  }
  reasons.Add(options.shape.kind != Kind::kText, "except on text and tokens", {"--context"});
  reasons.Add(options.shape.kind != Kind::kImages, "except on images",
              {"--flip", "--crop-padding", "--channels-last"});
}

void AddForOptimizer(const Options& options, const RunFacts& run, Reasons& reasons) {
  const std::string with = absl::StrCat("with ", options.model.name);
  reasons.Add(
      options.optimizer.own.rule.has_value(),
      absl::StrCat(with, ", which has an optimizer of its own"),
      {"--algorithm", "--optimizer", "--momentum", "--nesterov", "--beta1", "--beta2", "--eps"});
  reasons.Add(options.schedule.own != nullptr,
              absl::StrCat(with, ", which has a schedule of its own"),
              {"--schedule", "--lr-step-size", "--lr-gamma", "--lr-min"});
  const bool adamw = options.optimizer.kind == OptimizerKind::kAdamW;
  reasons.Add(adamw, "with --algorithm adamw", {"--momentum", "--nesterov"});
  reasons.Add(!adamw, "with --algorithm sgd", {"--beta1", "--beta2", "--eps"});
  reasons.Add(options.optimizer.weight_decay == 0, "without --weight-decay", {"--decay-vectors"});

  const ScheduleOptions& schedule = options.schedule;
  const std::vector<std::string> of_step = {"--lr-step-size", "--lr-gamma"};
  reasons.Add(schedule.kind != ScheduleKind::kStep, "without --schedule step", of_step);
  reasons.Add(schedule.kind != ScheduleKind::kCosine, "without --schedule cosine", {"--lr-min"});
  reasons.Add(schedule.warmup_steps == 0, "without --warmup-steps", {"--warmup-start"});
  const std::string of_run = absl::StrCat("in a run of ", run.steps, " steps");
  reasons.Add(run.steps > 0 && schedule.warmup_steps >= run.steps,
              absl::StrCat(of_run, ", all of them warm-up"),
              {"--schedule", "--lr-step-size", "--lr-gamma", "--lr-min"});
  reasons.Add(run.steps > 0 && schedule.warmup_steps + schedule.step_size >= run.steps,
              absl::StrCat(of_run, ", in which the learning rate never drops"), of_step);
  reasons.Add(!options.scales_losses(), "without --fp16 or --loss-scale", {"--loss-scale-window"});
}

void AddForRanks(const Options& options, const RunFacts& run, Reasons& reasons) {
  const ParallelOptions& parallel = options.parallel;
  const std::vector<std::string> of_ddp = {"--comm-hook",         "--bucket-mb",
                                           "--first-bucket-mb",   "--bucket-view",
                                           "--broadcast-buffers", "--find-unused-parameters",
                                           "--static-graph"};
  reasons.Add(parallel.kind == Parallel::kAverage, "with --parallel average", of_ddp);
  reasons.Add(parallel.kind == Parallel::kThreads, "with --parallel threads", of_ddp);
  reasons.Add(parallel.shares_model(), parallel.mesh.request ? "with --mesh" : "with --zero",
              of_ddp);
  reasons.Add(run.ranks == 1, "on one rank", of_ddp);
  reasons.Add(parallel.kind != Parallel::kAverage, "without --parallel average",
              {"--average-every"});
  reasons.Add(run.ranks == 1, "on one rank", {"--average-every", "--zero", "--sequence-parallel"});
  reasons.Add(parallel.kind != Parallel::kThreads, "without --parallel threads", {"--replicas"});
  reasons.Add(!run.has_batch_norm,
              absl::StrCat("with ", options.model.name,
                           ", which has no batch normalization that it reaches "
                           "(BatchNorm of trainer/models/batch_norm_layer.h)"),
              {"--sync-bn"});
  reasons.Add(run.ranks == 1, "on one rank", {"--sync-bn"});
  if (!parallel.mesh.request) return;
  const MeshRequest& mesh = *parallel.mesh.request;
  reasons.Add(!mesh.choose && mesh.pipeline.value_or(1) == 1, "without a pipeline (--mesh pp=2)",
              {"--pipeline-schedule"});
  reasons.Add(run.data_ranks == 1, "with one data rank", {"--zero", "--sync-bn"});
}

void AddForCheckpoints(const Options& options, Reasons& reasons) {
  const CheckpointOptions& checkpoint = options.checkpoint;
  const bool resumes = checkpoint.resume != "auto" && checkpoint.resume != "none";
  reasons.Add(checkpoint.directory.empty(), "without --checkpoint-dir",
              {"--checkpoint-every", "--checkpoint-format", "--keep"});
  reasons.Add(checkpoint.directory.empty() && !resumes, "without --checkpoint-dir or --resume PATH",
              {"--on-resize"});
  reasons.Add(checkpoint.init_from.empty(), "without --init-from",
              {"--init-strict", "--init-prefix"});
  reasons.Add(options.report.trace.empty(), "without --trace", {"--trace-steps"});
}

}  // namespace

CommandLine ReadCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string flag = word.substr(0, word.find('='));
    if (absl::StartsWith(flag, "--no-")) line["--" + flag.substr(5)] = flag;
    if (absl::StartsWith(flag, "--")) line[flag] = flag;
  }
  return line;
}

std::vector<std::string> FlagsWithoutEffect(const Options& options, const CommandLine& line,
                                            const RunFacts& run) {
  Reasons reasons;
  AddForData(options, reasons);
  for (const auto& [model, flags] : options.flags_of_models) {
    reasons.Add(model != options.model.name,
                absl::StrCat("with --model ", options.model.name, "; it is for ", model), flags);
  }
  reasons.Add(run.stages == 1,
              absl::StrCat("with ", options.model.name, ", which has one stage, and the last ",
                           "stage keeps what it computes"),
              {"--recompute"});
  reasons.Add(!run.gpu, "without a GPU", {"--tf32", "--deterministic"});
  reasons.Add(!options.qat.on, "without --qat", {"--qat-observe-epochs", "--qat-freeze-epoch"});
  AddForOptimizer(options, run, reasons);
  AddForRanks(options, run, reasons);
  AddForCheckpoints(options, reasons);

  std::vector<std::string> sentences;
  for (const Setting& setting : options.settings) {
    const std::string* const why = reasons.Of(setting.flag);
    const auto typed = line.find(setting.flag);
    const bool given = typed != line.end() || setting.value != setting.standard;
    if (!given || why == nullptr) continue;
    const std::string& name = typed == line.end() ? setting.flag : typed->second;
    sentences.push_back(absl::StrCat(name, " has no effect ", *why));
  }
  const std::int64_t warmup = options.schedule.warmup_steps;
  if (run.steps > 0 && warmup >= run.steps) {
    sentences.push_back(absl::StrCat("--warmup-steps ", warmup, " is no shorter than the run of ",
                                     run.steps, " steps, so the learning rate never reaches --lr"));
  }
  return sentences;
}

}  // namespace muster::trainer
