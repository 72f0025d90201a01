// Exchanges files between LibTorch and this machine's Python in both directions, and compares
// exactly what each side reads. scripts/compat/checkpoints26.sh does the same with PyTorch 2.6.
#include <gtest/gtest.h>

#include "test/trainer/io/interop_files.h"
#include "test/trainer/models/python.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr char kScript[] = "test/trainer/io/interop.py";

class InteropTest : public testing::Test {
 protected:
  void SetUp() override {
    static const bool has_torch = PythonHasTorch();  // takes seconds to find out
    if (!has_torch) GTEST_SKIP() << "needs Debian's python3-torch";
  }
  const std::string dir_ = testing::TempDir();
};

TEST_F(InteropTest, PythonReadsWhatWeWrite) {
  const std::string ours = WriteFilesForPython(dir_);
  EXPECT_EQ(RunPython(kScript, {"describe", dir_}), ours);
}

TEST_F(InteropTest, WeReadOrRefuseWhatPythonWrites) {
  const std::string pythons = RunPython(kScript, {"write", dir_});
  EXPECT_EQ(DescribeFilesOfPython(dir_), pythons);
}

TEST_F(InteropTest, PythonGoesOnExactlyFromACheckpointThatPassedThroughUs) {
  RunPython(kScript, {"start", dir_});
  CopyCheckpoint(dir_ + "/py_run.pt", dir_ + "/ours_run.pt");
  EXPECT_EQ(RunPython(kScript, {"resume", dir_}), "<All keys matched successfully>\nTrue\n");
}

}  // namespace
}  // namespace muster::trainer
