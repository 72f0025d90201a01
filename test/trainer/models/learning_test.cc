// Data, model and optimizer together learn a text.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/data/batch_loader.h"
#include "trainer/data/datasets.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"
#include "trainer/models/objective.h"
#include "trainer/optim/gradients.h"
#include "trainer/optim/optimizer.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kSteps = 80;
constexpr std::int64_t kBatch = 16;

TEST(LearningTest, GptLearnsWhichLettersFollowEachOther) {
  const auto data = OpenGeneratedText({.context = 64});
  ASSERT_TRUE(data.ok()) << data.status();
  const auto model =
      MakeModel(GptRecipe({.layers = 2, .heads = 2, .width = 64}), data->train->shape());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto optimizer =
      MakeOptimizer({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1, .decay_vectors = false},
                    (*model)->Parameters());
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  const ScheduleOptions schedule{.kind = ScheduleKind::kCosine,
                                 .learning_rate = 3e-3,
                                 .warmup_steps = 10,
                                 .total_steps = kSteps};

  const GlobalOrder order(data->train->size(), /*seed=*/0, /*epoch=*/0);
  BatchLoader loader(data->train, order.From(0, kBatch, /*rank=*/0, /*world_size=*/1), {});
  double first = 0;
  double last = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const auto batch = loader.Next();
    ASSERT_TRUE(batch.ok() && batch->has_value()) << batch.status();
    const Batch& texts = (*batch)->data;
    const at::Tensor loss = CrossEntropySum((*model)->Forward(texts.inputs), texts.targets) /
                            CountPredictions(texts.targets);
    for (const NamedTensor& parameter : (*model)->Parameters()) {
      parameter.tensor.mutable_grad().reset();
    }
    loss.backward();
    ClipGradientNorm((*model)->Parameters(), 1.0);
    (*optimizer)->Step(LearningRateAt(schedule, step));
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  // At first every byte is equally likely. The text has about 30 different ones; knowing only their
  // frequencies gives 2.9 nats.
  EXPECT_NEAR(first, std::log(256.0), 0.2);
  EXPECT_LT(last, 2.6);
}

}  // namespace
}  // namespace muster::trainer
