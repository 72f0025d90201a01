#include "trainer/worker/blas_probe.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(BlasProbeTest, MeasuresSomething) {
  EXPECT_GT(MeasureMatmulGflops(), 0.01);
}

// What the tests need installed is fast, whatever else runs while they do.
TEST(BlasProbeTest, OpenBlasIsNotTakenForTheReference) {
  EXPECT_EQ(LoadedReferenceBlas(), std::nullopt);
}

}  // namespace
}  // namespace muster::trainer
