#include "trainer/app/training/saving.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "trainer/app/training/agreement.h"
#include "trainer/app/training/snapshot.h"
#include "trainer/io/checkpoint_file.h"
#include "trainer/io/formats/value_tree.h"
#include "trainer/io/safetensors.h"
#include "trainer/io/shard_plan.h"

namespace muster::trainer {

absl::StatusOr<Value> TensorCopies::Copy(const Value& value) {
  const at::NoGradGuard no_grad;
  std::map<ElementsKey, at::Tensor> copied;
  std::size_t used = 0;
  const auto copy = [&](const at::Tensor& tensor, const TreePlace&) -> absl::StatusOr<Value> {
    // The code that writes the value reports what is wrong with it.
    if (!tensor.defined() || tensor.layout() != at::kStrided) return Value(tensor);
    at::Tensor& same = copied[KeyOfElements(tensor)];
    if (same.defined()) return Value(same);
    if (used == buffers_.size()) buffers_.emplace_back();
    at::Tensor& buffer = buffers_[used++];
    if (!buffer.defined() || buffer.sizes() != tensor.sizes() ||
        buffer.scalar_type() != tensor.scalar_type()) {
      buffer = at::empty(tensor.sizes(), tensor.scalar_type());
    }
    buffer.copy_(tensor);
    same = buffer;
    return Value(buffer);
  };
  absl::StatusOr<Value> copies = MapTensors<at::Tensor>(value, copy);
  buffers_.resize(used);
  return copies;
}

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
    return directory_.Save(step, value, job_, best);
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
    return directory_.SaveIndex(sharded_.step, sharded_.index, job_, sharded_.best);
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

namespace {

constexpr std::size_t kMostShardFacts = 64;

absl::StatusOr<std::string> FactsText(const absl::StatusOr<FileFacts>& facts) {
  if (!facts.ok()) return facts.status();
  return absl::StrCat(facts->bytes, " ", facts->crc32);
}

absl::StatusOr<FileFacts> ReadFactsText(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  FileFacts facts;
  if (words.size() == 2 && absl::SimpleAtoi(words[0], &facts.bytes) &&
      absl::SimpleAtoi(words[1], &facts.crc32)) {
    return facts;
  }
  return absl::InternalError("checkpoint: a rank does not say what it has written");
}

}  // namespace

Saver::Saver(const Job& job, StartPoint&& start)
    : job_(job),
      in_shards_(job.options.checkpoint.format == CheckpointFormat::kShards),
      owners_(std::move(start.owners.ranks)),
      team_(std::move(start.owners.team)),
      kept_step_(start.kept_step),
      lock_(std::move(start.lock)) {
  if (start.owners.directory) {
    writer_.emplace(*std::move(start.owners.directory), std::move(start.job));
  }
  if (start.kept_everywhere) saved_step_ = start.state.step;
}

// Whether this rank writes a shard of the checkpoint of `step`. Not if its team has resumed from
// it: it would destroy what may be the only copy, to write the same again.
bool Saver::WritesShard(std::int64_t step) const {
  return writer_ && kept_step_ != step;
}

bool Saver::IsOwner() const {
  return writer_ && team_[0] == job_.env.rank;
}

bool Saver::WritesIndex(std::int64_t step) const {
  return WritesShard(step) && IsOwner();
}

Share Saver::OwnShare() const {
  const auto mine = std::find(team_.begin(), team_.end(), job_.env.rank);
  return {static_cast<int>(mine - team_.begin()), static_cast<int>(team_.size())};
}

absl::Status Saver::Save(Strategy& strategy, const TrainState& state, double lr) {
  if (!saves()) return absl::OkStatus();
  if (saved_step_ == state.step) {
    if (!job_.options.checkpoint.keep_best) return absl::OkStatus();
    // A later test may have found that it is the best.
    const absl::Status written = Finish(state.step);
    if (written.ok() && IsOwner()) writer_->StartBest(state.best.step);
    return written;
  }
  const absl::Status before = Finish(state.step);
  if (!before.ok()) return before;
  if (in_shards_) {
    const absl::Status prepared = FirstFailure(
        WritesIndex(state.step) ? writer_->PrepareShards(state.step) : absl::OkStatus(),
        job_.group());
    if (!prepared.ok()) return prepared;
  }
  const bool others_save = in_shards_ || owners_.back() > 0;
  absl::StatusOr<Dict> model = strategy.Save(lr, others_save);
  if (!model.ok()) return model.status();
  saved_step_ = state.step;
  shards_open_ = in_shards_;
  if (!writer_) return absl::OkStatus();
  const auto best =
      job_.options.checkpoint.keep_best ? std::optional(state.best.step) : std::nullopt;
  const Value snapshot = TakeSnapshot(*std::move(model), state, job_.options, job_.data.facts, lr);
  if (!in_shards_) {
    writer_->Start(state.step, snapshot, best);
  } else if (WritesShard(state.step)) {
    writer_->StartShard(state.step, snapshot, OwnShare(), best);
  }
  job_.beats.Send(state.step);
  return absl::OkStatus();
}

absl::Status Saver::Index() {
  if (!std::exchange(shards_open_, false)) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> texts =
      FromAll(writer_ ? FactsText(writer_->shard()) : std::string(), kMostShardFacts, job_.group());
  if (!texts.ok()) return texts.status();
  if (!WritesIndex(saved_step_)) return absl::OkStatus();
  std::vector<FileFacts> files;
  for (const int rank : team_) {
    const absl::StatusOr<FileFacts> facts = ReadFactsText((*texts)[static_cast<std::size_t>(rank)]);
    if (!facts.ok()) return facts.status();
    files.push_back(*facts);
  }
  writer_->StartIndex(files);
  return absl::OkStatus();
}

absl::Status Saver::Finish(std::int64_t step) {
  if (!saves()) return absl::OkStatus();
  const auto written = [this](std::chrono::milliseconds most) {
    return !writer_ || writer_->WaitFor(most);
  };
  AwaitAll(job_, step, written);
  if (shards_open_) {
    const absl::Status indexed = Index();
    if (!indexed.ok()) return indexed;
    AwaitAll(job_, step, written);
  }
  return FirstFailure(writer_ ? writer_->status() : absl::OkStatus(), job_.group());
}

void Saver::Wait() {
  if (writer_) writer_->Wait();
}

std::string Saver::PathOf(std::int64_t step) const {
  return writer_ ? writer_->directory().PathOf(step) : "";
}

void AwaitAll(const Job& job, std::int64_t step,
              const std::function<bool(std::chrono::milliseconds)>& done) {
  constexpr std::chrono::milliseconds kBetweenBeats(250);
  while (job.group().Sum({done(kBetweenBeats) ? 0.0 : 1.0})[0] > 0) job.beats.Send(step);
}

}  // namespace muster::trainer
