#include "trainer/runtime/process_setup.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(BlasProbeTest, MeasuresSomething) {
  EXPECT_GT(MeasureMatmulGflops(), 0.01);
}

// The BLAS that the tests require is fast, whatever else is running.
TEST(BlasProbeTest, OpenBlasIsNotTakenForTheReference) {
  EXPECT_EQ(LoadedReferenceBlas(), std::nullopt);
}

}  // namespace
}  // namespace muster::trainer
