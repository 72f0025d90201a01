#include "trainer/core/blas_probe.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(BlasProbeTest, MeasuresSomething) {
  EXPECT_GT(MeasureMatmulGflops(), 0.01);
}

// A user trained 25 times slower than need be, and nothing said why.
TEST(BlasProbeTest, TheReferenceBlasIsWarnedOf) {
  const auto warning = SlowBlasWarning(5.1);
  ASSERT_TRUE(warning.has_value());
  EXPECT_NE(warning->find("5.1 GFLOP/s"), std::string::npos);
  EXPECT_NE(warning->find("libopenblas0-pthread"), std::string::npos);
  EXPECT_FALSE(SlowBlasWarning(60).has_value());
}

}  // namespace
}  // namespace muster::trainer
