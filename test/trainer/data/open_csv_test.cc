// Tables as tensors.
#include "trainer/data/datasets.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

TEST(OpenCsvTest, RowsAreInputsAndClassesTargets) {
  const test::TempDir dir;
  const auto splits = OpenTable({.paths = {dir.Write("a.csv", "x,y,kind\n-1,3,b\n1,3,a\n")},
                                 .target = "kind",
                                 .test_paths = {dir.Write("b.csv", "x,y,kind\n2,4,a\n")}});
  ASSERT_TRUE(splits.ok()) << splits.status();
  const DataShape shape = splits->train->shape();
  EXPECT_EQ(shape.kind, DataShape::Kind::kTable);
  EXPECT_EQ(shape.width, 2);
  EXPECT_EQ(shape.classes, 2);
  const Batch batch = splits->train->Gather({1, 0, 1}, 0, true);
  EXPECT_EQ(batch.inputs.sizes(), (std::vector<std::int64_t>{3, 1, 1, 2}));
  EXPECT_TRUE(batch.inputs.flatten().equal(at::tensor({1.F, 0.F, -1.F, 0.F, 1.F, 0.F})));
  EXPECT_TRUE(batch.targets.equal(at::tensor({0, 1, 0}, at::kLong)));
  EXPECT_EQ(splits->test->Gather({0}, 0, false).inputs[0][0][0][1].item<float>(), 1);
  EXPECT_THROW(splits->train->Gather({2}, 0, true), std::out_of_range);
}

TEST(OpenCsvTest, AMistakeIsASentence) {
  EXPECT_EQ(OpenTable({.paths = {"/nonexistent.csv"}, .target = "x"}).status().message(),
            "read /nonexistent.csv: No such file or directory");
}

}  // namespace
}  // namespace muster::trainer
