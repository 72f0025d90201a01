// What muster-train does when its numbers are no longer finite.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"
#include "trainer/io/state_dict.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;
using test::ReadAll;

class FinitenessTest : public testing::Test {
 protected:
  std::vector<std::string> Training(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments =
        test::Joined({"--dataset", "generated", "--model", "mlp", "--comm", "gloo", "--no-eval",
                      "--checkpoint", dir_.Path("model.pt")},
                     more);
    return MusterTrainWith(arguments);
  }
  // Trains with two checkpoints kept, and one every `every` steps.
  std::vector<std::string> Kept(const std::string& every, std::vector<std::string> more) const {
    more.insert(more.end(),
                {"--checkpoint-dir", kept_, "--keep", "2", "--checkpoint-every", every});
    return Training(more);
  }

  // The names of the existing checkpoints.
  std::vector<std::string> Checkpoints() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(kept_)) {
      if (entry.path().extension() == ".pt") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // Writes parameters of the small network: the first layer gives 1e-30 for any image, and from
  // there on the numbers grow. In the forward pass they reach a loss of about 1e14; in the backward
  // pass the gradient of the first layer overflows.
  std::string WriteSteepModel() const {
    const auto full = [](std::vector<std::int64_t> sizes, double value) {
      return at::full(sizes, value, at::kFloat);
    };
    at::Tensor last = full({10, 256}, 0);
    last[0].fill_(1e20);
    const std::string path = dir_.Path("steep.pt");
    const absl::Status written =
        WriteTorchFile(StateDictValue({{"1.weight", full({256, 784}, 0)},
                                       {"1.bias", full({256}, 1e-30)},
                                       {"3.weight", full({256, 256}, 1e20)},
                                       {"3.bias", full({256}, 0)},
                                       {"5.weight", last},
                                       {"5.bias", full({10}, 0)}}),
                       path);
    EXPECT_TRUE(written.ok()) << written;
    return path;
  }

  const test::TempDir dir_;
  const std::string kept_ = dir_.Path("kept");
};

// "In ChooseQuantizationParams, min should be less than or equal to max", with exit code 1: the
// range of NaNs was computed before the loss was checked.
TEST_F(FinitenessTest, ARunWithQuantizationThatDivergesSaysTheSame) {
  Ranks diverging(Training({"--qat", "--qat-observe-epochs", "0", "--lr", "1e6"}), 2);
  EXPECT_EQ(diverging.Wait(), (std::vector<int>{2, 2}));
  EXPECT_NE(diverging[0].err().find(" is NaN or infinite; lower --lr"), std::string::npos)
      << diverging[0].err();
}

// "It ran over the weekend, and left only three checkpoints of NaN."
TEST_F(FinitenessTest, ARunThatDivergesEndsAndLeavesItsGoodCheckpoints) {
  Ranks good(Kept("4", {"--max-steps", "8"}), 2);
  ASSERT_EQ(good.Wait(), (std::vector<int>{0, 0})) << good.errors();
  const std::vector<std::string> kept = Checkpoints();
  ASSERT_EQ(kept.size(), 2u);

  Ranks diverging(Kept("4", {"--lr", "1e6", "--loss-log", dir_.Path("loss")}), 2);
  EXPECT_EQ(diverging.Wait(), (std::vector<int>{2, 2}));
  EXPECT_EQ(Checkpoints(), kept);
  for (const int rank : {0, 1}) {
    EXPECT_NE(diverging[rank].err().find(": training stopped in epoch 1: the loss of step 1"),
              std::string::npos)
        << diverging[rank].err();
    EXPECT_NE(diverging[rank].err().find(" is NaN or infinite; lower --lr"), std::string::npos);
  }
  const std::string losses = ReadAll(dir_.Path("loss"));
  EXPECT_NE(losses.find("nan\n"), std::string::npos) << "the last line is the one that says it";
}

// The loss is fine, the gradient is not, and there is no later step whose loss would show it.
TEST_F(FinitenessTest, ABrokenParameterIsNamedAndNotKept) {
  for (const char* every : {"1", "0"}) {
    Ranks ranks(Kept(every, {"--init-from", WriteSteepModel(), "--max-steps", "1"}), 2);
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2}));
    EXPECT_NE(ranks[1].err().find("step 1 made 1.weight NaN or infinite; lower --lr"),
              std::string::npos)
        << ranks[1].err();
    EXPECT_EQ(Checkpoints(), std::vector<std::string>());
    EXPECT_EQ(ReadAll(dir_.Path("model.pt")), "");
  }
}

TEST_F(FinitenessTest, ALossThatABrokenParameterGivesIsBlamedOnTheStepThatBrokeIt) {
  Ranks ranks(Training({"--init-from", WriteSteepModel()}), 2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2}));
  EXPECT_NE(ranks[0].err().find("step 1 made 1.weight NaN or infinite; lower --lr"),
            std::string::npos)
      << ranks[0].err();
}

TEST_F(FinitenessTest, ParametersThatWereNeverFiniteAreNotBlamedOnAStep) {
  const at::Tensor bad = at::full({10}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  ASSERT_TRUE(WriteTorchFile(StateDictValue({{"5.bias", bad}}), dir_.Path("bad.pt")).ok());
  Ranks ranks(Training({"--init-from", dir_.Path("bad.pt"), "--no-init-strict"}), 2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2}));
  EXPECT_NE(ranks[1].err().find("5.bias was NaN or infinite before the first step"),
            std::string::npos)
      << ranks[1].err();
}

TEST_F(FinitenessTest, StepsThatAreSkippedLeaveNoTrace) {
  const std::string before = WriteSteepModel();
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--clip", "1"}, {"--parallel", "average"}}) {
    std::vector<std::string> arguments =
        test::Joined(Training({"--init-from", before, "--max-steps", "3", "--on-nonfinite", "skip",
                               "--algorithm", "adamw", "--weight-decay", "0.1", "--metrics",
                               dir_.Path("metrics")}),
                     more);
    Ranks ranks(arguments, 2);
    ASSERT_EQ(ranks.Wait(), (std::vector<int>{0, 0})) << ranks.errors();
    EXPECT_NE(
        ranks[0].out().find("\nskipped        3 steps, whose gradients were NaN or infinite\n"),
        std::string::npos)
        << ranks[0].out();
    EXPECT_NE(ranks[0].out().find("step 1 is skipped: its gradient is NaN or infinite\n"),
              std::string::npos)
        << ranks[0].out();
    EXPECT_NE(ReadAll(dir_.Path("metrics")).find("\"train/skipped_steps\":3"), std::string::npos);
    EXPECT_TRUE(ReadAll(dir_.Path("model.pt")) == ReadAll(before)) << "the files differ";
  }
}

TEST_F(FinitenessTest, WhoIgnoresItGetsNoCheckpointOfItEither) {
  Ranks ranks(
      Kept("2", {"--init-from", WriteSteepModel(), "--max-steps", "3", "--on-nonfinite", "ignore"}),
      1);
  ASSERT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
  EXPECT_NE(
      ranks[0].out().find("no checkpoint is written after step 2: 1.weight is NaN or infinite\n"),
      std::string::npos)
      << ranks[0].out();
  EXPECT_EQ(Checkpoints(), std::vector<std::string>());
  EXPECT_NE(ReadAll(dir_.Path("model.pt")), "") << "what was asked for at the end is written";
}

}  // namespace
}  // namespace muster::trainer
