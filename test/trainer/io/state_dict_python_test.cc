// State dicts as Python's torch.load sees them.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/trainer/program.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kDeadline(60);

// Python's output for `code`, with the checkpoint's path as sys.argv[1].
std::string PythonOutput(const std::string& code, const std::string& path) {
  Program python({"/usr/bin/python3", "-c", code, path}, {});
  EXPECT_EQ(python.Wait(kDeadline), 0) << python.errors();
  return python.output();
}

std::string StateDictPathFor(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

TEST(StateDictPythonTest, PythonReadsEveryDtypeAndView) {
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  const at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
  const std::string path = StateDictPathFor("dtypes.pt");
  const absl::Status saved =
      WriteTorchFile(StateDictValue({
                         {"z.weight", matrix},
                         {"a.transposed", matrix.t()},
                         {"row", matrix[1]},
                         {"scalar", at::scalar_tensor(2.5)},
                         {"empty", at::zeros({0, 4})},
                         {"double", at::tensor({1.0 / 3}, at::kDouble)},
                         {"half", at::full({1}, 0.5, at::kHalf)},
                         {"bfloat16", at::full({1}, 1.5, at::kBFloat16)},
                         {"long", at::tensor({-(std::int64_t{1} << 40)}, at::kLong)},
                         {"int", at::tensor({-7}, at::kInt)},
                         {"byte", at::tensor({255}, at::kByte)},
                         {"bool", at::tensor({1, 0}, at::kByte).to(at::kBool)},
                         {"leaf", at::ones({2}).requires_grad_()},
                     }),
                     path);
  ASSERT_TRUE(saved.ok()) << saved;
  EXPECT_EQ(PythonOutput(R"(
import sys, torch
state = torch.load(sys.argv[1])
print(type(state).__name__)
for name, t in state.items():
    print(name, str(t.dtype)[6:], tuple(t.shape), t.tolist(), t.storage().size(), t.requires_grad)
)",
                         path),
            "OrderedDict\n"
            "z.weight float32 (2, 3) [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] 6 False\n"
            "a.transposed float32 (3, 2) [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] 6 False\n"
            "row float32 (3,) [3.0, 4.0, 5.0] 3 False\n"
            "scalar float32 () 2.5 1 False\n"
            "empty float32 (0, 4) [] 0 False\n"
            "double float64 (1,) [0.3333333333333333] 1 False\n"
            "half float16 (1,) [0.5] 1 False\n"
            "bfloat16 bfloat16 (1,) [1.5] 1 False\n"
            "long int64 (1,) [-1099511627776] 1 False\n"
            "int int32 (1,) [-7] 1 False\n"
            "byte uint8 (1,) [255] 1 False\n"
            "bool bool (2,) [True, False] 2 False\n"
            "leaf float32 (2,) [1.0, 1.0] 2 False\n");
}

TEST(StateDictPythonTest, AnUnwritablePathIsAUsersMistake) {
  const absl::Status status =
      WriteTorchFile(StateDictValue({{"w", at::ones({2})}}), "/no/such/dir/w.pt");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "write /no/such/dir/w.pt: No such file or directory");
}

TEST(StateDictPythonTest, ADtypeWithoutAStorageIsRefusedBeforeTheFileIsTouched) {
  const std::string path = StateDictPathFor("complex.pt");
  std::ofstream(path) << "old";
  const absl::Status status =
      WriteTorchFile(StateDictValue({{"spectrum", at::ones({2}, at::kComplexFloat)}}), path);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("spectrum"), absl::string_view::npos);
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
}

}  // namespace
}  // namespace muster::trainer
