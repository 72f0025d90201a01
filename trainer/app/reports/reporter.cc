#include "trainer/app/reports/reporter.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"

namespace muster::trainer {
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

}  // namespace muster::trainer
