#include "trainer/app/training/checkpoint_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/io/shards/shard_plan.h"
#include "trainer/io/shards/sharded_checkpoint.h"

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
    return directory_.Save(step, value, job_, best).status();
  });
}

void CheckpointWriter::StartShard(std::int64_t step, const Value& snapshot, const Share& share,
                                  std::optional<std::int64_t> best) {
  Wait();
  if (!status_.ok()) return;
  absl::StatusOr<ShardPlan> plan = PlanShards(snapshot, share.shards);
  if (!plan.ok()) {
    status_ = absl::Status(
        plan.status().code(),
        absl::StrCat("write ", directory_.ShardsPathOf(step), ": ", plan.status().message()));
    return;
  }
  std::vector<NamedTensor> mine = std::move(plan->tensors[static_cast<std::size_t>(share.shard)]);
  Value::List tensors;
  for (const NamedTensor& named : mine) tensors.emplace_back(named.tensor);
  const absl::StatusOr<Value> copies = copies_.Copy(Value(std::move(tensors)));
  if (!copies.ok()) {
    status_ = copies.status();
    return;
  }
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i].tensor = *(*copies->list())[i].tensor();
  sharded_ = {step, best, std::move(plan->index), {}};
  writing_ = std::async(std::launch::async, [this, share, tensors = std::move(mine)] {
    const absl::StatusOr<FileFacts> written =
        WriteShard(directory_.ShardsPathOf(sharded_.step), share.shard, share.shards, tensors);
    if (written.ok()) sharded_.written = *written;
    return written.status();
  });
}

absl::StatusOr<FileFacts> CheckpointWriter::shard() const {
  if (!status_.ok()) return status_;
  return sharded_.written;
}

void CheckpointWriter::StartIndex(const std::vector<FileFacts>& files) {
  Wait();
  if (!status_.ok()) return;
  sharded_.index.files = files;
  writing_ = std::async(std::launch::async, [this] {
    return directory_.SaveIndex(sharded_.step, sharded_.index, job_, sharded_.best).status();
  });
}

void CheckpointWriter::StartBest(std::int64_t step) {
  Wait();
  if (!status_.ok()) return;
  writing_ = std::async(std::launch::async, [this, step] { return directory_.MarkBest(step); });
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
