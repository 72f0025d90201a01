#include "trainer/runtime/process_setup.h"

#include <cstdlib>
#include <string>

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

class SetPrecisionTest : public testing::Test {
 protected:
  ~SetPrecisionTest() override {
    SetPrecision(/*tf32=*/false, /*deterministic=*/false);
    unsetenv("CUBLAS_WORKSPACE_CONFIG");
  }
};

// LibTorch's default for convolutions is TensorFloat-32: the curve on a GPU differed from the
// CPU's.
TEST_F(SetPrecisionTest, Float32IsFloat32UnlessAsked) {
  const at::Context& context = at::globalContext();
  SetPrecision(/*tf32=*/false, /*deterministic=*/false);
  EXPECT_FALSE(context.allowTF32CuDNN());
  EXPECT_FALSE(context.allowTF32CuBLAS());
  SetPrecision(/*tf32=*/true, /*deterministic=*/false);
  EXPECT_TRUE(context.allowTF32CuDNN());
  EXPECT_TRUE(context.allowTF32CuBLAS());
}

TEST_F(SetPrecisionTest, DeterministicOperationsAreAskedForOfAllLibraries) {
  unsetenv("CUBLAS_WORKSPACE_CONFIG");
  const at::Context& context = at::globalContext();
  SetPrecision(/*tf32=*/false, /*deterministic=*/false);
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_EQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), nullptr);
  SetPrecision(/*tf32=*/false, /*deterministic=*/true);
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_TRUE(context.deterministicCuDNN());
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
}

TEST_F(SetPrecisionTest, LeavesAWorkspaceThatIsSet) {
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  SetPrecision(/*tf32=*/false, /*deterministic=*/true);
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":16:8");
}

}  // namespace
}  // namespace muster::trainer
