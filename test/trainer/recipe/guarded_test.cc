// Checks of a user's recipe at run time.
#include "trainer/models/guarded.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace muster::trainer {
namespace {

Recipe WithLoss(std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> loss) {
  Recipe recipe{.name = "hills"};
  recipe.loss = std::move(loss);
  return recipe;
}

// The error of `call`; empty if there is none.
template <typename Call>
std::string RefusalOf(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// A loss that returned a mean was divided by the number of samples again: with a batch of 12 the
// model silently learned a twelfth as fast.
TEST(GuardedTest, ALossThatIsAMeanIsRefused) {
  const Recipe mean = Guarded(
      WithLoss([](const at::Tensor& a, const at::Tensor& b) { return (a - b).square().mean(); }));
  EXPECT_EQ(RefusalOf([&] {
              mean.loss(at::zeros({12, 1}), at::ones({12, 1}));
            }),
            "the loss of hills: it is a mean, 1 for a batch and for the same batch twice; return "
            "the sum over the samples (at::Reduction::Sum), which is divided by the number of "
            "predictions of all ranks");
}

// The first batch may be inconclusive: no samples, or a loss of 0, which doubled is 0.
TEST(GuardedTest, TheFirstBatchThatTellsIsLookedAt) {
  const Recipe mean = Guarded(WithLoss(
      [](const at::Tensor& a, const at::Tensor& b) { return (a - b).square().sum() / a.size(0); }));
  EXPECT_EQ(RefusalOf([&] { mean.loss(at::ones({4, 1}), at::ones({4, 1})); }), "");
  EXPECT_NE(RefusalOf([&] { mean.loss(at::zeros({4, 1}), at::ones({4, 1})); }), "");
}

TEST(GuardedTest, ASumIsLookedAtOnceAndRandomNumbersGoOn) {
  int calls = 0;
  const Recipe sum = Guarded(WithLoss([&calls](const at::Tensor& a, const at::Tensor& b) {
    ++calls;
    return (a - b).square().sum() + 0 * at::rand({}).sum();
  }));
  at::manual_seed(7);
  const at::Tensor first = at::rand({2});
  const at::Tensor expected = at::rand({});  // behind the draw of the loss
  at::manual_seed(7);
  EXPECT_EQ(at::rand({1}).item<float>(), first[0].item<float>());
  EXPECT_EQ(sum.loss(at::zeros({4, 1}), at::ones({4, 1})).item<double>(), 4);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(at::rand({}).item<float>(), expected.item<float>());
  sum.loss(at::zeros({4, 1}), at::ones({4, 1}));
  EXPECT_EQ(calls, 3);
}

// Some losses depend on the length of a batch.
TEST(GuardedTest, ALossThatTakesNoLongerBatchIsLeftAlone) {
  const Recipe fixed = Guarded(WithLoss([](const at::Tensor& a, const at::Tensor& b) {
    return (a.view({2, 2}) - b.view({2, 2})).square().mean();
  }));
  EXPECT_EQ(RefusalOf([&] { fixed.loss(at::zeros({4}), at::ones({4})); }), "");
}

}  // namespace
}  // namespace muster::trainer
