// --keep-best when a run is stopped while it tests its model, and resumes later.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using test::ReadAll;
using Words = std::vector<std::string>;

constexpr int kStopped = 143;

class KeepBestTest : public testing::TestWithParam<const char*> {
 protected:
  // Trains a model that no longer improves, so that its first test is the best, with eight steps
  // per epoch.
  std::vector<int> Train(const std::string& epochs, const Words& environment = {}) const {
    Ranks ranks(Words{"test/trainer/recipe/own_program", "stop-in-test", "--batch-size=12",
                      "--lr=1e-30", "--epochs=" + epochs, "--keep=1", "--keep-best",
                      "--checkpoint-dir=" + dir_.Path("run"),
                      std::string("--checkpoint-format=") + GetParam()},
                2, environment);
    return ranks.Wait();
  }
  std::string Best() const { return ReadAll(dir_.Path("run/best")); }
  std::string NameOf(const std::string& step) const {
    return "step-0000000000" + step + (GetParam() == std::string("whole") ? ".pt" : "");
  }

  const test::TempDir dir_;
};

// The resumed run found the best model, but never marked it in the directory: a later one with
// --keep 1 removed it.
TEST_P(KeepBestTest, ATestThatWasBrokenOffAndTakenAgainFindsTheBest) {
  EXPECT_EQ(Train("1", {"STOP_IN_TEST=1"}), (std::vector<int>{kStopped, kStopped}));
  EXPECT_EQ(Best(), "");
  EXPECT_EQ(Train("1"), (std::vector<int>{0, 0}));
  EXPECT_EQ(Best(), NameOf("08") + "\n");
  EXPECT_EQ(Train("3"), (std::vector<int>{0, 0}));
  EXPECT_EQ(Best(), NameOf("08") + "\n");
  EXPECT_TRUE(fs::exists(dir_.Path("run/" + NameOf("08"))));
  EXPECT_TRUE(fs::exists(dir_.Path("run/" + NameOf("24"))));
}

// The same when more epochs follow at once: the best was removed before it was marked.
TEST_P(KeepBestTest, TheBestOutlivesTheEpochsBehindATestTakenAgain) {
  EXPECT_EQ(Train("3", {"STOP_IN_TEST=1"}), (std::vector<int>{kStopped, kStopped}));
  EXPECT_EQ(Train("3"), (std::vector<int>{0, 0}));
  EXPECT_EQ(Best(), NameOf("08") + "\n");
  EXPECT_TRUE(fs::exists(dir_.Path("run/" + NameOf("08"))));
}

INSTANTIATE_TEST_SUITE_P(Forms, KeepBestTest, testing::Values("whole", "shards"));

}  // namespace
}  // namespace muster::trainer
