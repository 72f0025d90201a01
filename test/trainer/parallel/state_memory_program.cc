// One rank of sharding_test: compares the memory of its tensors after a backward pass, by their
// allocator, with the formula. Exits with 0 if they agree; prints differences to stderr.
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/randint.h>

#include "trainer/app/strategies/strategy.h"
#include "trainer/comm/world.h"
#include "trainer/compat/tensor_memory.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"
#include "trainer/models/objective.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/sharded_parameters.h"
#include "trainer/worker/launcher_link.h"

namespace muster::trainer {
namespace {

constexpr double kPercent = 0.01;
constexpr DataShape kText = {.kind = DataShape::Kind::kText, .classes = 300, .context = 8};

int failures = 0;

struct Case {
  Shard shard;
  OptimizerKind kind;
  int kept;  // numbers for each parameter
};

void Check(const Case& c, Group& group) {
  const std::int64_t before = compat::TensorBytes();
  {
    const auto model =
        MakeModel(GptRecipe({.layers = 4, .heads = 4, .width = 128}), kText, {.seed = 7}).value();
    std::vector<std::vector<NamedTensor>> units;
    for (std::size_t stage = 0; stage < model->stages().size(); ++stage) {
      units.push_back(model->ParametersOf({stage, stage + 1}));
    }
    ShardedParameters sharded(std::move(units), c.shard, group);
    const auto optimizer = MakePartOptimizer({.kind = c.kind}, sharded.shards());
    for (int step = 0; step < 3; ++step) {
      const at::Tensor rows = at::randint(kText.classes, {2, kText.context}, at::kLong);
      {
        at::Tensor x = rows;
        for (std::size_t stage = 0; stage < model->stages().size(); ++stage) {
          x = sharded.Run(stage, [&] { return model->ForwardPart({}, {stage, stage + 1}, x); });
        }
        CrossEntropySum(x, rows).backward();
      }
      sharded.EndBackward();
      const auto held = static_cast<double>(compat::TensorBytes() - before);
      const auto formula = static_cast<double>(
          StateBytes(static_cast<int>(c.shard), group.size(), sharded.parameter_bytes(), c.kept));
      // The first step makes the optimizer's state.
      if (step > 0 && std::abs(held / formula - 1) > kPercent) {
        std::fprintf(stderr, "stage %d of %d ranks, %d kept: %.0f bytes, by the formula %.0f\n",
                     static_cast<int>(c.shard), group.size(), c.kept, held, formula);
        ++failures;
      }
      sharded.Finish();
      optimizer->Step(1e-3);
      sharded.Changed();
    }
  }
  const std::int64_t left = compat::TensorBytes() - before;
  if (left > (64 << 10)) {
    std::fprintf(stderr, "%lld bytes are left behind\n", static_cast<long long>(left));
    ++failures;
  }
}

int Main() {
  compat::CountTensorMemory();
  const Environment env = ReadEnvironment(LookupInProcess).value();
  const auto world = World::Join(env, Comm::kShm, std::chrono::seconds(60)).value();
  for (const Shard shard : {Shard::kOptimizer, Shard::kGradients, Shard::kParameters}) {
    Check({shard, OptimizerKind::kAdamW, 2}, world->all());
    Check({shard, OptimizerKind::kSgd, 1}, world->all());
  }
  world->all().Barrier();
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::trainer

int main() {
  return muster::trainer::Main();
}
