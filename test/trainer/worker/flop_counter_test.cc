#include "trainer/runtime/flop_counter.h"

#include <gtest/gtest.h>

#include <functional>

#include <torch/torch.h>

namespace muster::trainer {
namespace {

std::int64_t Count(const std::function<void()>& work) {
  const FlopCounter counter;
  work();
  return counter.flops();
}

// What torch.utils.flop_counter of PyTorch 2.6 counts for the same, each of them.
TEST(FlopCounterTest, CountsAsPython) {
  const torch::Tensor x = torch::randn({5, 7});
  EXPECT_EQ(Count([&] { torch::linear(x, torch::randn({3, 7}), torch::randn({3})); }), 210);
  EXPECT_EQ(Count([&] { torch::mm(x, torch::randn({7, 2})); }), 140);
  EXPECT_EQ(Count([&] { torch::randn({2, 4, 3}).matmul(torch::randn({2, 3, 5})); }), 240);
  EXPECT_EQ(Count([&] { (x + x).exp().sum(); }), 0);

  const torch::Tensor weight = torch::randn({6, 2, 3, 3});
  const torch::Tensor images = torch::randn({2, 4, 8, 9});
  EXPECT_EQ(Count([&] {
              torch::conv2d(images, weight, {}, /*stride=*/2, /*padding=*/1, /*dilation=*/1,
                            /*groups=*/2);
            }),
            8640);
}

TEST(FlopCounterTest, CountsBackwardPasses) {
  torch::Tensor weight = torch::randn({3, 7}).requires_grad_();
  torch::Tensor x = torch::randn({5, 7});
  EXPECT_EQ(Count([&] { torch::linear(x, weight).sum().backward(); }), 420) << "of weights alone";
  x.requires_grad_();
  EXPECT_EQ(Count([&] { torch::linear(x, weight).sum().backward(); }), 630);

  torch::Tensor kernel = torch::randn({6, 4, 3, 3}).requires_grad_();
  torch::Tensor images = torch::randn({2, 4, 8, 9}).requires_grad_();
  EXPECT_EQ(Count([&] { torch::conv2d(images, kernel).sum().backward(); }), 3 * 36288);
}

TEST(FlopCounterTest, CountsNothingWhenItIsGone) {
  { const FlopCounter counter; }
  torch::mm(torch::randn({2, 2}), torch::randn({2, 2}));
  EXPECT_EQ(Count([] {}), 0);
}

}  // namespace
}  // namespace muster::trainer
