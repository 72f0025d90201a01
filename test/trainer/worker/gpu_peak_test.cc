#include "trainer/runtime/flop_counter.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(GpuPeakTest, IsFoundByTheNameThatNvmlGives) {
  EXPECT_EQ(PeakFlops("NVIDIA H100 80GB HBM3", Multiplies::kHalf), 989.5e12);
  EXPECT_EQ(PeakFlops("NVIDIA H100 PCIe", Multiplies::kHalf), 756e12);
  EXPECT_EQ(PeakFlops("NVIDIA A100-SXM4-40GB", Multiplies::kTf32), 156e12);
  EXPECT_EQ(PeakFlops("NVIDIA L4", Multiplies::kFloat), 30.3e12);
  EXPECT_EQ(PeakFlops("NVIDIA L40S", Multiplies::kHalf), 362e12);
}

TEST(GpuPeakTest, IsNotGuessed) {
  EXPECT_EQ(PeakFlops("NVIDIA L40", Multiplies::kHalf), std::nullopt);
  EXPECT_EQ(PeakFlops("NVIDIA A10G", Multiplies::kHalf), std::nullopt);
  EXPECT_EQ(PeakFlops("NVIDIA GeForce RTX 4090", Multiplies::kFloat), std::nullopt);
  EXPECT_EQ(PeakFlops("Tesla T4", Multiplies::kTf32), std::nullopt) << "it has no such units";
  EXPECT_EQ(PeakFlops("", Multiplies::kDouble), std::nullopt);
}

}  // namespace
}  // namespace muster::trainer
