#include "test/rendezvous/cluster/disk.h"

#include <utility>

namespace muster::rendezvous {

using std::chrono::microseconds;

void Disk::Write(DiskBatch batch, std::function<void(DiskOutcome)> done) {
  writing_ = std::make_shared<Writing>(Writing{std::move(batch), std::move(done)});
  Duration takes = microseconds(200 + random_.Below(5'000));
  if (scheduler_.now() < slow_until_)
    takes += microseconds(random_.Below(longest_ / microseconds(1)));
  scheduler_.After(takes, [this, writing = std::weak_ptr<Writing>(writing_)] {
    if (const auto still = writing.lock(); still != nullptr && still == writing_) Finish(still);
  });
}

void Disk::Finish(const std::shared_ptr<Writing>& writing) {
  writing_.reset();
  if (std::exchange(breaks_, false)) {
    incidents_.Count(Incident::kDiskBroken);
    if (random_.Chance(1, 2)) Apply(std::move(writing->batch));
    return writing->done(DiskOutcome::kBroken);
  }
  if (scheduler_.now() < full_until_) return writing->done(DiskOutcome::kFull);
  Apply(std::move(writing->batch));
  writing->done(DiskOutcome::kWritten);
}

void Disk::WriterDied() {
  if (writing_ == nullptr) return;
  const bool kept = random_.Chance(1, 2);
  incidents_.Count(kept ? Incident::kBatchKept : Incident::kBatchLost);
  if (kept && scheduler_.now() >= full_until_) Apply(std::move(writing_->batch));
  writing_.reset();
}

void Disk::SlowUntil(Duration longest, TimePoint until) {
  longest_ = longest;
  slow_until_ = until;
}

void Disk::Apply(DiskBatch batch) {
  if (on_durable) {
    for (const auto& [run_id, job] : batch.jobs) on_durable(run_id, job ? &job->record : nullptr);
  }
  contents_.Apply(std::move(batch));
}

void DiskContents::Apply(DiskBatch batch) {
  for (auto& [run_id, job] : batch.jobs) {
    if (job) {
      jobs[run_id] = std::move(*job);
    } else {
      jobs.erase(run_id);
      entries.erase(run_id);
    }
  }
  for (DiskBatch::Entry& entry : batch.entries) {
    auto& values = entries[entry.run_id];
    if (entry.value) {
      values[entry.key] = std::move(*entry.value);
    } else {
      values.erase(entry.key);
    }
  }
}

}  // namespace muster::rendezvous
