// One hundred steps on Fashion-MNIST with two ranks, by muster-train and by Python's
// DistributedDataParallel: every weight is the same, in every bit. scripts/compat/ddp_parity.sh
// does the same for the whole epoch.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/app/ranks.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr char kScript[] = "test/trainer/app/testdata/ddp_parity.py";

TEST(ParityTest, WeightsArePythonsBitForBit) {
  if (!HasFashionMnist()) GTEST_SKIP() << "needs Debian's dataset-fashion-mnist";
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  const test::TempDir dir;
  TrainOk({"--comm", "gloo", "--optimizer", "reference", "--no-eval", "--data", kFashionMnist,
           "--max-steps", "100", "--batch-size", "128", "--lr", "0.02", "--momentum", "0.9",
           "--seed", "3", "--checkpoint", dir.Path("ours.pt")},
          2);
  Ranks python({"/usr/bin/python3", kScript, "train", kFashionMnist, "100", "128", "0.02", "0.9",
                "3", dir.Path("python.pt")},
               2);
  ASSERT_EQ(python.Wait(), (std::vector<int>{0, 0})) << python.errors();
  test::Command compare(
      {"/usr/bin/python3", kScript, "compare", dir.Path("ours.pt"), dir.Path("python.pt")});
  EXPECT_EQ(compare.Wait(std::chrono::seconds(60)), 0) << compare.out() << compare.err();
}

}  // namespace
}  // namespace muster::trainer
