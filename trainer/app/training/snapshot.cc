#include "trainer/app/training/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/app/training/facts_value.h"
#include "trainer/app/training/option_changes.h"

namespace muster::trainer {

Value TakeSnapshot(Dict model, const TrainState& state, const Options& options,
                   const DataFacts& facts, double lr) {
  Dict scheduler;
  scheduler.Set("last_epoch", state.step);
  scheduler.Set("_last_lr", Value::List{lr});

  Dict snapshot = std::move(model);
  snapshot.Set("scheduler", std::move(scheduler));
  snapshot.Set("sampler", TrainStateValue(state));
  snapshot.Set("model_name", options.model.name);
  snapshot.Set("model_flags", FlagsValue(ModelFlags(options)));
  snapshot.Set("options", OptionsValue(options.settings));
  SetFacts(facts, snapshot);
  return snapshot;
}

absl::StatusOr<std::vector<std::string>> PutBack(const Value& snapshot, const Options& options,
                                                 Strategy& strategy, TrainState& state) {
  const Value* sampler = snapshot.Find("sampler");
  if (snapshot.Find("model_name") == nullptr || snapshot.Find("model") == nullptr ||
      snapshot.Find("optimizer") == nullptr || sampler == nullptr) {
    return absl::InvalidArgumentError(
        "it is no checkpoint of muster-train; --init-from takes parameters alone");
  }
  absl::StatusOr<std::vector<std::string>> sentences = CompareOptions(snapshot, options);
  if (!sentences.ok()) return sentences;
  const absl::StatusOr<TrainState> before = ReadTrainState(*sampler);
  if (!before.ok()) return before.status();
  if (before->seed != state.seed) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with --seed ", before->seed));
  }
  if (before->dataset_size != state.dataset_size) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with a data set of ",
                                                   before->dataset_size, " samples, and ",
                                                   state.dataset_size, " are here"));
  }
  const absl::Status loaded = strategy.Load(snapshot);
  if (!loaded.ok()) return loaded;
  state = *before;
  return sentences;
}

}  // namespace muster::trainer
