#include "trainer/app/training/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/app/strategies/optimizer_value.h"
#include "trainer/app/training/option_changes.h"
#include "trainer/io/state_dict.h"

namespace muster::trainer {
namespace {

// An average that begins with this run begins with the parameters.
absl::Status PutBackEma(const Value* averages, Ema* ema) {
  if (ema == nullptr) return absl::OkStatus();
  if (averages != nullptr) return LoadStateDict(*averages, ema->averages()).status();
  ema->Restart();
  return absl::OkStatus();
}

}  // namespace

Value TakeSnapshot(const Trained& trained, const Options& options, double lr) {
  Dict scheduler;
  scheduler.Set("last_epoch", trained.state.step);
  scheduler.Set("_last_lr", Value::List{lr});

  Dict snapshot;
  snapshot.Set("model", StateDictValue(trained.model.StateDict()));
  if (trained.ema != nullptr) snapshot.Set("ema", StateDictValue(trained.ema->averages()));
  snapshot.Set("optimizer", OptimizerStateValue(trained.optimizer.State(lr)));
  snapshot.Set("scheduler", std::move(scheduler));
  snapshot.Set("sampler", TrainStateValue(trained.state));
  snapshot.Set("model_name", options.model.name);
  snapshot.Set("model_flags", FlagsValue(ModelFlags(options)));
  snapshot.Set("options", OptionsValue(options.settings));
  return snapshot;
}

absl::StatusOr<std::vector<std::string>> PutBack(const Value& snapshot, const Options& options,
                                                 const Trained& trained) {
  const Value* parameters = snapshot.Find("model");
  const Value* optimizer = snapshot.Find("optimizer");
  const Value* sampler = snapshot.Find("sampler");
  if (snapshot.Find("model_name") == nullptr || parameters == nullptr || optimizer == nullptr ||
      sampler == nullptr) {
    return absl::InvalidArgumentError(
        "it is no checkpoint of muster-train; --init-from takes parameters alone");
  }
  absl::StatusOr<std::vector<std::string>> sentences = CompareOptions(snapshot, options);
  if (!sentences.ok()) return sentences;
  const absl::StatusOr<TrainState> before = ReadTrainState(*sampler);
  if (!before.ok()) return before.status();
  if (before->seed != trained.state.seed) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with --seed ", before->seed));
  }
  if (before->dataset_size != trained.state.dataset_size) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with a data set of ",
                                                   before->dataset_size, " samples, and ",
                                                   trained.state.dataset_size, " are here"));
  }
  const auto loaded = LoadStateDict(*parameters, trained.model.StateDict());
  if (!loaded.ok()) return loaded.status();
  absl::Status status = PutBackEma(snapshot.Find("ema"), trained.ema);
  if (!status.ok()) return status;
  const absl::StatusOr<OptimizerState> optimizer_state = ReadOptimizerState(*optimizer);
  if (!optimizer_state.ok()) return optimizer_state.status();
  status = trained.optimizer.Load(*optimizer_state);
  if (!status.ok()) return status;
  trained.state = *before;
  return sentences;
}

}  // namespace muster::trainer
