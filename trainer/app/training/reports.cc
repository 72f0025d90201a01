#include "trainer/app/training/reports.h"

#include <chrono>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {
namespace {

// "1.23 GFLOP"
std::string FlopText(double flops) {
  const char* unit = "FLOP";
  for (const char* larger : {"kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"}) {
    if (flops < 1000) break;
    flops /= 1000;
    unit = larger;
  }
  return absl::StrFormat("%.3g %s", flops, unit);
}

}  // namespace

std::string FormatSummary(const Summary& summary) {
  std::string text = absl::StrFormat(
      "world size     %d (%s)\n"
      "restarts       %d\n",
      summary.world_size, summary.comm, summary.restart_count);
  if (summary.resumed_step > 0) {
    absl::StrAppendFormat(&text, "resumed        after step %d\n", summary.resumed_step);
  }
  absl::StrAppendFormat(&text,
                        "epochs         %d (%d steps of %d %s)\n"
                        "train loss     %.4f (mean of the last epoch)\n",
                        summary.epochs, summary.steps, summary.batch_size, summary.unit,
                        summary.train_loss);
  if (summary.skipped_steps > 0) {
    absl::StrAppendFormat(&text, "skipped        %d steps, whose gradients were NaN or infinite\n",
                          summary.skipped_steps);
  }
  if (summary.test_loss) absl::StrAppendFormat(&text, "test loss      %.4f\n", *summary.test_loss);
  if (summary.best_test_loss) {
    absl::StrAppendFormat(&text, "best test loss %.4f (after step %d)\n", *summary.best_test_loss,
                          summary.best_step);
  }
  for (const MetricValue& metric : summary.test_metrics) {
    absl::StrAppendFormat(&text, "%-15s%s%s\n", "test " + metric.name + " ", ValueText(metric),
                          summary.int8_metrics.empty() ? "" : " (fake-quantized)");
  }
  for (const MetricValue& metric : summary.int8_metrics) {
    absl::StrAppendFormat(&text, "%-15s%s\n", "int8 " + metric.name + " ", ValueText(metric));
  }
  if (summary.steps > summary.resumed_step) {
    absl::StrAppendFormat(&text, "speed          %.0f %s/s", summary.samples_per_second,
                          summary.unit);
    if (summary.tokens_per_second > 0) {
      absl::StrAppendFormat(&text, ", %.0f tokens/s", summary.tokens_per_second);
    }
    text += "\n";
  } else {
    text +=
        "speed          nothing to do: no steps were left; --epochs or --max-steps gives more\n";
  }
  if (summary.flops_per_second > 0) {
    absl::StrAppendFormat(&text, "arithmetic     %s for a sample, %s/s of a rank",
                          FlopText(summary.flops_per_sample), FlopText(summary.flops_per_second));
    if (summary.peak_flops > 0) {
      absl::StrAppendFormat(&text, ": %.1f %% of the peak in %s",
                            100 * summary.flops_per_second / summary.peak_flops, summary.peak_of);
    }
    text += "\n";
  }
  if (summary.formula_bytes_per_step > 0) {
    const std::optional<double>& counted = summary.counted_bytes_per_step;
    absl::StrAppendFormat(&text, "traffic        %.3f MB sent by a rank in a step%s",
                          counted.value_or(summary.formula_bytes_per_step) / 1e6,
                          counted ? "" : ", by its formula: LibTorch does not count");
    const char* between = ": ";
    for (const auto& [dimension, bytes] : summary.bytes_by_dimension) {
      absl::StrAppendFormat(&text, "%s%s %.3f", std::exchange(between, ", "), dimension,
                            bytes / 1e6);
    }
    text += "\n";
  }
  if (summary.peak_memory_bytes > 0) {
    absl::StrAppendFormat(&text, "peak memory    %.0f MB",
                          static_cast<double>(summary.peak_memory_bytes) / 1e6);
    if (summary.peak_gpu_bytes > 0) {
      absl::StrAppendFormat(&text, ", and %.0f MB on the GPU",
                            static_cast<double>(summary.peak_gpu_bytes) / 1e6);
    }
    text += summary.world_size > 1 ? " (rank 0)\n" : "\n";
  }
  if (!summary.checkpoint.empty()) {
    absl::StrAppendFormat(&text, "checkpoint     %s\n", summary.checkpoint);
  }
  return text;
}

namespace {

absl::Status OpenLog(const std::string& path, std::int64_t resumed_step,
                     std::unique_ptr<StepLog>* log) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<StepLog>> opened = StepLog::Open(path, resumed_step);
  if (opened.ok()) *log = *std::move(opened);
  return opened.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reporter>> Reporter::Open(const ReportOptions& options,
                                                         std::int64_t resumed_step) {
  auto reporter = std::make_unique<Reporter>();
  absl::Status status = OpenLog(options.loss_log, resumed_step, &reporter->loss_log_);
  if (status.ok()) status = OpenLog(options.metrics, resumed_step, &reporter->metrics_);
  if (!status.ok()) return status;
  if (!options.tensorboard.empty()) {
    auto writer = TensorBoardWriter::Create(options.tensorboard, UnixSeconds(), resumed_step);
    if (!writer.ok()) return writer.status();
    reporter->tensorboard_ = *std::move(writer);
  }
  return reporter;
}

void Reporter::StepLoss(std::int64_t step, double loss) {
  if (loss_log_) loss_log_->Append(absl::StrFormat("%d %.9g", step, loss));
}

void Reporter::Report(const Scalars& scalars) {
  if (metrics_ && !metrics_->Kept(scalars)) metrics_->Append(JsonLine(scalars));
  if (tensorboard_) status_.Update(tensorboard_->Write(scalars));
}

absl::Status Reporter::Flush() {
  if (loss_log_) status_.Update(loss_log_->Flush());
  if (metrics_) status_.Update(metrics_->Flush());
  return status_;
}

double UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string DataName(const Options& options) {
  if (!options.data_set.title.empty()) return options.data_set.title;
  const std::vector<std::string>& paths = options.data.paths;
  std::string text = absl::StrCat(options.data_set.name, " (");
  if (!paths.empty()) text += paths.front();
  if (paths.size() > 1) absl::StrAppend(&text, " and ", paths.size() - 1, " more");
  return text + ")";
}

std::string StartLine(const Options& options, const Environment& env, int threads, double gflops) {
  return absl::StrFormat("%s: %s on %s, rank %d of %d, %d thread%s each, BLAS %.0f GFLOP/s",
                         options.program, options.model.name, DataName(options), env.rank,
                         env.world_size, threads, threads == 1 ? "" : "s", gflops);
}

std::string JoinedLine(const World& world) {
  return absl::StrCat("joined: ", CommName(world.comm()), " on ", world.device().str(), " (",
                      world.why_comm(), ")");
}

// Not getrusage: its maximum survives exec, and so starts with that of the parent process.
std::int64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace muster::trainer
