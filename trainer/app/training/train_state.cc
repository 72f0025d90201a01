#include "trainer/app/training/train_state.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

// Far above any real batch, and small enough that sums do not overflow.
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 48;

Value LossSumValue(const LossSum& sum) {
  Dict dict;
  dict.Set("loss", sum.loss);
  dict.Set("predictions", sum.predictions);
  return dict;
}

// Reads the entries of one dict, and keeps the first error.
class Reader {
 public:
  explicit Reader(const Value& value) : value_(value) {}

  std::int64_t Whole(const std::string& key) { return WholeIn(value_, key); }
  LossSum Losses(const std::string& key) {
    const Value* entry = value_.Find(key);
    if (entry == nullptr) {
      Complain(absl::InvalidArgumentError(absl::StrCat("'", key, "' is missing")));
      return {};
    }
    return {Keep(entry->GetFloat("loss")).value_or(0),
            Keep(entry->GetFloat("predictions")).value_or(0)};
  }

  Best BestIn(const Value& entry) {
    return {Keep(entry.GetFloat("loss")).value_or(0), WholeIn(entry, "step"),
            WholeIn(entry, "tests_since")};
  }
  const absl::Status& status() const { return status_; }

 private:
  std::int64_t WholeIn(const Value& dict, const std::string& key) {
    const absl::StatusOr<std::int64_t> number = Keep(dict.GetInt(key));
    if (number.ok() && *number < 0) {
      Complain(absl::InvalidArgumentError(absl::StrCat("'", key, "' is ", *number)));
    }
    return number.value_or(0);
  }
  template <typename T>
  absl::StatusOr<T> Keep(absl::StatusOr<T> result) {
    if (!result.ok()) Complain(result.status());
    return result;
  }
  void Complain(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const Value& value_;
  absl::Status status_;
};

}  // namespace

Value TrainStateValue(const TrainState& state) {
  Dict dict;
  dict.Set("step", state.step);
  dict.Set("epoch", state.epoch);
  dict.Set("position", state.position);
  dict.Set("epoch_loss", LossSumValue(state.epoch_loss));
  dict.Set("report_loss", LossSumValue(state.report_loss));
  // Python's integers have no fixed sign bit, ours do: keeps the bits.
  dict.Set("seed", static_cast<std::int64_t>(state.seed));
  dict.Set("dataset_size", state.dataset_size);
  dict.Set("batch_size", state.batch_size);
  dict.Set("world_size", static_cast<std::int64_t>(state.parts));
  dict.Set("asked_batch_size", state.asked_batch_size);
  dict.Set("asked_share", state.asked_share);
  Dict best;
  best.Set("loss", state.best.loss);
  best.Set("step", state.best.step);
  best.Set("tests_since", state.best.tests_since);
  dict.Set("best", std::move(best));
  return dict;
}

absl::StatusOr<TrainState> ReadTrainState(const Value& value) {
  Reader reader(value);
  TrainState state;
  state.step = reader.Whole("step");
  state.epoch = reader.Whole("epoch");
  state.position = reader.Whole("position");
  state.epoch_loss = reader.Losses("epoch_loss");
  state.report_loss = reader.Losses("report_loss");
  state.seed = static_cast<std::uint64_t>(value.GetInt("seed").value_or(0));
  state.dataset_size = reader.Whole("dataset_size");
  state.batch_size = reader.Whole("batch_size");
  state.parts = static_cast<int>(reader.Whole("world_size"));
  if (value.Find("asked_share") != nullptr) {
    state.asked_batch_size = reader.Whole("asked_batch_size");
    state.asked_share = reader.Whole("asked_share");
  }
  if (const Value* best = value.Find("best")) state.best = reader.BestIn(*best);
  if (!reader.status().ok()) return reader.status();
  if (state.position > state.dataset_size || state.batch_size < 1 ||
      state.batch_size > kLargestBatch || state.parts < 1 || std::isnan(state.best.loss)) {
    return absl::InvalidArgumentError("its sampler's state contradicts itself");
  }
  return state;
}

namespace {

std::int64_t LargestShare(std::int64_t batch_size, int parts) {
  return (batch_size + parts - 1) / parts;
}

}  // namespace

absl::Status BeginBatch(const BatchRequest& request, TrainState* state) {
  absl::Status status = CheckBatchSize(request.batch_size, request.parts);
  if (!status.ok()) return status;
  state->batch_size = request.batch_size;
  state->parts = request.parts;
  state->asked_batch_size = request.batch_size;
  state->asked_share = LargestShare(request.batch_size, request.parts);
  return absl::OkStatus();
}

absl::Status ResumeBatch(const BatchRequest& request, TrainState* state) {
  if (state->asked_share == 0) {
    // The checkpoint is of an older version: assume that the batch in use had been requested.
    state->asked_batch_size = request.batch_size;
    state->asked_share = LargestShare(state->batch_size, state->parts);
  }
  if (request.batch_size != state->asked_batch_size) return BeginBatch(request, state);
  if (request.parts != state->parts && request.on_resize == OnResize::kScaleBatch) {
    state->batch_size = state->asked_share * request.parts;
    // The request, if the world size is the same as then: not all ranks had the largest share.
    const bool whole = LargestShare(state->asked_batch_size, request.parts) == state->asked_share;
    if (whole) state->batch_size = std::min(state->batch_size, state->asked_batch_size);
  }
  state->parts = request.parts;
  return absl::OkStatus();
}

}  // namespace muster::trainer
