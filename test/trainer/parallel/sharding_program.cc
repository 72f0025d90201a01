// One rank of sharding_test: trains a small GPT with sharded parameters, and the same network on
// the whole batch without. Exits with 0 if they agree; prints differences to stderr.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <torch/utils.h>

#include "absl/strings/str_cat.h"

#include "trainer/comm/world.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"
#include "trainer/models/objective.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/sharded_parameters.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr int kSteps = 8;
constexpr std::int64_t kRankBatch = 4;
constexpr DataShape kText = {.kind = DataShape::Kind::kText, .classes = 50, .context = 8};

int failures = 0;

void Expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  ++failures;
}

std::unique_ptr<Model> MakeGpt() {
  auto model = MakeModel(GptRecipe({.layers = 2, .heads = 2, .width = 20}), kText, {.seed = 7});
  (*model)->MoveTo(at::kCPU, at::kDouble);
  return *std::move(model);
}

// How a run is done.
struct Case {
  Shard shard;
  OptimizerKind kind;
  int accumulate;

  std::string Name() const {
    const char* const optimizer = kind == OptimizerKind::kSgd ? "SGD" : "AdamW";
    return absl::StrCat("stage ", static_cast<int>(shard), ", ", optimizer, ", ", accumulate,
                        " micro-batches");
  }
  // AdamW makes steps of this size of whatever gradients, rounding that should be 0 included.
  double lr() const { return kind == OptimizerKind::kSgd ? 0.05 : 1e-3; }
  // Whether the sums are formed in the order of the all-reduce.
  bool exact(int ranks) const {
    return ranks <= 2 && (accumulate == 1 || shard == Shard::kOptimizer);
  }
  OptimizerOptions options() const {
    return {.kind = kind, .weight_decay = 0.1, .decay_vectors = false};
  }
};

// The text of a step, and what of it a rank has.
struct Text {
  explicit Text(int step, int ranks) {
    torch::manual_seed(1000 + step);
    tokens = at::randint(kText.classes, {kRankBatch * ranks, kText.context + 1}, at::kLong);
  }
  at::Tensor tokens;
};

at::Tensor LossOf(const at::Tensor& outputs, const at::Tensor& rows, std::int64_t of) {
  return CrossEntropySum(outputs, rows.narrow(1, 1, kText.context)) /
         static_cast<double>(of * kText.context);
}

at::Tensor InputsOf(const at::Tensor& rows) {
  return rows.narrow(1, 0, kText.context);
}

// On the whole batch, as one process would.
std::vector<NamedTensor> Alone(const Case& c, int ranks) {
  const auto model = MakeGpt();
  const auto optimizer = MakeOptimizer(c.options(), model->Parameters()).value();
  for (int step = 0; step < kSteps; ++step) {
    const Text text(step, ranks);
    for (NamedTensor& parameter : model->Parameters()) parameter.tensor.mutable_grad().reset();
    LossOf(model->Forward(InputsOf(text.tokens)), text.tokens, kRankBatch * ranks).backward();
    optimizer->Step(c.lr());
  }
  return model->Parameters();
}

// Each rank's part, gradients averaged by an all-reduce: what DDP does.
std::vector<NamedTensor> Averaged(const Case& c, Group& group) {
  const auto model = MakeGpt();
  const auto optimizer = MakeOptimizer(c.options(), model->Parameters()).value();
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor rows =
        Text(step, group.size()).tokens.narrow(0, kRankBatch * group.rank(), kRankBatch);
    for (NamedTensor& parameter : model->Parameters()) parameter.tensor.mutable_grad().reset();
    for (const at::Tensor& part : rows.chunk(c.accumulate)) {
      LossOf(model->Forward(InputsOf(part)), part, kRankBatch).backward();
    }
    for (NamedTensor& parameter : model->Parameters()) {
      at::Tensor gradient = parameter.tensor.grad();
      group.AllReduce(gradient, Use::kOther, 1.0 / group.size());
    }
    optimizer->Step(c.lr());
  }
  return model->Parameters();
}

class Sharded {
 public:
  Sharded(const Case& c, Group& group)
      : case_(c),
        group_(group),
        sharded_(Units(), c.shard, group),
        optimizer_(MakePartOptimizer(c.options(), sharded_.shards())) {}

  at::Tensor Forward(const at::Tensor& inputs) {
    at::Tensor x = inputs;
    for (std::size_t stage = 0; stage < model_->stages().size(); ++stage) {
      x = sharded_.Run(stage, [&] { return model_->ForwardPart({}, {stage, stage + 1}, x); });
    }
    return x;
  }

  void Step(int step) {
    const at::Tensor rows =
        Text(step, group_.size()).tokens.narrow(0, kRankBatch * group_.rank(), kRankBatch);
    for (const at::Tensor& part : rows.chunk(case_.accumulate)) {
      LossOf(Forward(InputsOf(part)), part, kRankBatch).backward();
      sharded_.EndBackward();
    }
    sharded_.Finish();
    optimizer_->Step(case_.lr());
    sharded_.Changed();
  }

  std::vector<NamedTensor> Parameters() {
    sharded_.GatherAll();
    return model_->Parameters();
  }

  ShardedParameters& sharded() { return sharded_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  std::vector<std::vector<NamedTensor>> Units() const {
    std::vector<std::vector<NamedTensor>> units;
    for (std::size_t stage = 0; stage < model_->stages().size(); ++stage) {
      units.push_back(model_->ParametersOf({stage, stage + 1}));
    }
    return units;
  }

  const Case case_;
  Group& group_;
  const std::unique_ptr<Model> model_ = MakeGpt();
  ShardedParameters sharded_;
  const std::unique_ptr<Optimizer> optimizer_;
};

double Difference(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, (a[i].tensor - b[i].tensor).abs().max().item<double>());
  }
  return most;
}

// Half of the steps, then the whole state goes into another run.
void GoesOn(const Case& c, Group& group, const std::vector<NamedTensor>& right) {
  Sharded first(c, group);
  for (int step = 0; step < kSteps / 2; ++step) first.Step(step);
  const std::vector<NamedTensor> whole = first.sharded().Whole(first.sharded().shards());
  const std::vector<ParameterState> state =
      first.sharded().WholeState(first.optimizer().State(c.lr()).parameters);
  Sharded second(c, group);
  {
    const at::NoGradGuard no_grad;
    second.sharded().TakePart(whole, second.sharded().shards());
  }
  second.sharded().Changed();
  const absl::Status loaded =
      second.optimizer().Load({.parameters = second.sharded().PartOfState(state)});
  Expect(loaded.ok(), std::string(loaded.message()));
  for (int step = kSteps / 2; step < kSteps; ++step) second.Step(step);
  Expect(Difference(second.Parameters(), right) == 0, c.Name() + ": goes on as if never stopped");
}

void Check(const Case& c, Group& group) {
  const double alone = Difference(Averaged(c, group), Alone(c, group.size()));
  Expect(alone < 1e-12, absl::StrCat(c.Name(), ": all-reduce against one process ", alone));

  Sharded sharded(c, group);
  const auto sent = [&] {
    return group.traffic(Use::kGradients).formula_bytes +
           group.traffic(Use::kParameters).formula_bytes;
  };
  sharded.Step(0);  // after it, parameters are gathered in each step
  const std::int64_t before = sent();
  for (int step = 1; step < kSteps; ++step) sharded.Step(step);
  const std::int64_t a_step = (sent() - before) / (kSteps - 1);
  const std::vector<NamedTensor> result = sharded.Parameters();
  const double averaged = Difference(result, Averaged(c, group));
  Expect(c.exact(group.size()) ? averaged == 0 : averaged < 1e-12,
         absl::StrCat(c.Name(), ": sharded against all-reduce ", averaged));
  Expect(Difference(result, Alone(c, group.size())) < 1e-12,
         c.Name() + ": sharded against one process");
  if (c.accumulate == 1) {
    Expect(a_step == sharded.sharded().FormulaBytes(),
           absl::StrCat(c.Name(), ": sent ", a_step, " bytes in a step, and the formula says ",
                        sharded.sharded().FormulaBytes()));
  }
  GoesOn(c, group, result);
}

int Main(const std::string& comm) {
  torch::set_num_threads(1);
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const auto world =
      World::Join(env, comm == "shm" ? Comm::kShm : Comm::kGloo, std::chrono::seconds(60)).value();
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdamW}) {
      for (const int accumulate : {1, 2}) Check({shard, kind, accumulate}, world->all());
    }
  }
  world->all().Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  return muster::trainer::Main(argc > 1 ? argv[1] : "gloo");
}
