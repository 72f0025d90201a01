#include "trainer/app/training/checkpoint_writer.h"

#include <utility>

#include "absl/status/statusor.h"

namespace muster::trainer {

CheckpointWriter::CheckpointWriter(CheckpointDirectory directory, std::string job)
    : directory_(std::move(directory)), job_(std::move(job)) {}

void CheckpointWriter::Start(std::int64_t step, const Value& snapshot,
                             std::optional<std::int64_t> best) {
  Wait();
  if (!status_.ok()) return;
  absl::StatusOr<Value> copy = copies_.Copy(snapshot);
  if (!copy.ok()) {
    status_ = copy.status();
    return;
  }
  writing_ = std::async(std::launch::async, [this, step, best, value = *std::move(copy)] {
    const absl::Status saved = directory_.Save(step, value, job_).status();
    return saved.ok() && best ? directory_.MarkBest(*best) : saved;
  });
}

bool CheckpointWriter::WaitFor(std::chrono::milliseconds most) {
  if (!writing_.valid()) return true;
  if (writing_.wait_for(most) != std::future_status::ready) return false;
  status_.Update(writing_.get());
  return true;
}

void CheckpointWriter::Wait() {
  if (writing_.valid()) status_.Update(writing_.get());
}

}  // namespace muster::trainer
