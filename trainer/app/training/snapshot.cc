#include "trainer/app/training/snapshot.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/app/training/optimizer_value.h"
#include "trainer/app/training/option_changes.h"
#include "trainer/data/loading/mixed_bits.h"
#include "trainer/io/rng_state.h"
#include "trainer/io/state_dict.h"

namespace muster::trainer {
namespace {

at::Tensor BytesTensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

absl::Status PutBackRng(const Value* rng, int rank, const TrainState& before, int world_size) {
  if (before.world_size != world_size) {
    // Random numbers of a rank that was not there cannot go on; these do not depend on chance.
    at::manual_seed(MixedBits(before.seed, before.step, rank));
    return absl::OkStatus();
  }
  const auto place = static_cast<std::size_t>(rank);
  if (rng == nullptr || rng->list() == nullptr || rng->list()->size() <= place ||
      (*rng->list())[place].tensor() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has no state of rank ", rank, "'s random numbers"));
  }
  return SetCpuRngState(*(*rng->list())[place].tensor());
}

// An average that begins with this run begins with the parameters.
absl::Status PutBackEma(const Value* averages, Ema* ema) {
  if (ema == nullptr) return absl::OkStatus();
  if (averages != nullptr) return LoadStateDict(*averages, ema->averages()).status();
  ema->Restart();
  return absl::OkStatus();
}

}  // namespace

Value TakeSnapshot(const Trained& trained, const Options& options, double lr,
                   const std::vector<std::string>& rng) {
  Dict scheduler;
  scheduler.Set("last_epoch", trained.state.step);
  scheduler.Set("_last_lr", Value::List{lr});
  Value::List states;
  for (const std::string& state : rng) states.emplace_back(BytesTensor(state));

  Dict snapshot;
  snapshot.Set("model", StateDictValue(trained.model.StateDict()));
  if (trained.ema != nullptr) snapshot.Set("ema", StateDictValue(trained.ema->averages()));
  snapshot.Set("optimizer", OptimizerStateValue(trained.optimizer.State(lr)));
  snapshot.Set("scheduler", std::move(scheduler));
  snapshot.Set("sampler", TrainStateValue(trained.state));
  snapshot.Set("rng", std::move(states));
  snapshot.Set("model_name", options.model.name);
  snapshot.Set("model_flags", FlagsValue(ModelFlags(options)));
  snapshot.Set("options", OptionsValue(options.settings));
  return snapshot;
}

absl::StatusOr<std::vector<std::string>> PutBack(const Value& snapshot, const Options& options,
                                                 int rank, int world_size, const Trained& trained) {
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
  if (status.ok()) status = PutBackRng(snapshot.Find("rng"), rank, *before, world_size);
  if (!status.ok()) return status;
  trained.state = *before;
  return sentences;
}

}  // namespace muster::trainer
