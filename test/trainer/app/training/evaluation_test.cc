// The test at the end of an epoch measures the saved model.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

class EvaluationTest : public testing::Test {
 protected:
  // Two steps of a network with batch normalization, in float64 so that the number of ranks does
  // not show in the rounding.
  std::vector<std::string> Training(const std::string& name,
                                    const std::vector<std::string>& more) const {
    return test::Joined(
        test::Joined(test::WordsOf("--dataset generated --model resnet18 --stem imagenet "
                                   "--dtype float64 --comm gloo --max-steps 2 --batch-size 8"),
                     {"--checkpoint", dir_.Path("model.pt"), "--checkpoint-dir", dir_.Path(name),
                      "--metrics", dir_.Path("metrics")}),
        more);
  }

  // Trains the small network for `epochs` epochs of 17 steps and keeps one checkpoint, and the
  // best.
  std::vector<std::string> Epochs(int epochs, const std::vector<std::string>& more) const {
    return test::Joined(
        {"--dataset", "generated", "--model", "mlp", "--comm", "gloo", "--checkpoint",
         dir_.Path("model.pt"), "--checkpoint-dir", dir_.Path("kept"), "--keep", "1", "--keep-best",
         "--epochs", std::to_string(epochs)},
        more);
  }
  std::vector<std::string> Kept() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.Path("kept"))) {
      if (entry.path().extension() == ".pt") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // The last value of that name that was written.
  double Metric(const std::string& name) const {
    double value = -1;
    std::ifstream file(dir_.Path("metrics"));
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line, nullptr, false);
      if (record.contains(name)) value = record[name];
    }
    return value;
  }
  double TestLoss() const { return Metric("test/loss"); }

  const test::TempDir dir_;
};

// "Two ranks reported 61.2 %, and the checkpoint that they wrote has 60.8 %": each rank had
// measured with its own running statistics.
TEST_F(EvaluationTest, WhatIsMeasuredIsWhatIsSaved) {
  for (const std::vector<std::string>& way :
       std::vector<std::vector<std::string>>{{}, {"--no-broadcast-buffers"}}) {
    const std::string name = way.empty() ? "default" : way[0];
    SCOPED_TRACE(name);
    TrainOk(Training(name, way), 2);
    const double measured = TestLoss();
    // Nothing is left to train, so this measures the saved model.
    TrainOk(Training(name, way), 1);
    EXPECT_NEAR(TestLoss(), measured, 1e-9);
  }
}

// With a tiny learning rate the later tests are equally good, which is not better.
TEST_F(EvaluationTest, TheBestCheckpointIsKeptBesidesTheNewest) {
  TrainOk(Epochs(2, {}), 2);
  EXPECT_EQ(Kept(), std::vector<std::string>{"step-000000000034.pt"});
  const std::string out = TrainOk(Epochs(4, {"--lr", "1e-30"}), 2);
  EXPECT_NE(out.find(" (after step 34)\n"), std::string::npos) << out;
  EXPECT_EQ(Kept(), (std::vector<std::string>{"step-000000000034.pt", "step-000000000068.pt"}));
  EXPECT_EQ(test::ReadAll(dir_.Path("kept") + "/best"), "step-000000000034.pt\n");
}

TEST_F(EvaluationTest, ATrainingThatNoLongerImprovesEndsEarlyAlsoWhenItResumes) {
  TrainOk(Epochs(2, {"--early-stop", "2"}), 2);
  TrainOk(Epochs(3, {"--early-stop", "2", "--lr", "1e-30"}), 2);
  for (const char* run : {"one that goes on", "one that finds nothing left to do"}) {
    const std::string out = TrainOk(Epochs(100, {"--early-stop", "2", "--lr", "1e-30"}), 2);
    EXPECT_NE(out.find("stopped early after epoch 4: no test in a row of 2 was better than "),
              std::string::npos)
        << run << out;
    EXPECT_NE(out.find("epochs         4 (68 steps of "), std::string::npos) << run << out;
  }
}

TEST_F(EvaluationTest, TheMovingAverageIsWrittenAndTheTrainingGoesOnWithoutIt) {
  const std::vector<std::string> log = {"--loss-log", dir_.Path("loss")};
  const auto train = [&](int epochs, const std::string& decay) {
    std::vector<std::string> more = log;
    if (!decay.empty()) more.insert(more.end(), {"--ema", decay});
    TrainOk(Epochs(epochs, more), 2);
    return test::ReadAll(dir_.Path("model.pt"));
  };
  const std::string plain = train(2, "");
  const std::string plain_losses = test::ReadAll(dir_.Path("loss"));
  std::filesystem::remove_all(dir_.Path("kept"));

  const std::string first_average = train(1, "0.9");
  const std::string average = train(2, "0.9");
  EXPECT_EQ(test::ReadAll(dir_.Path("loss")), plain_losses);
  EXPECT_TRUE(average != plain && average != first_average);
  EXPECT_TRUE(train(2, "") == plain) << "the checkpoint has the parameters";
  EXPECT_TRUE(train(2, "0.9") == average) << "and their average";
  std::filesystem::remove_all(dir_.Path("kept"));
  EXPECT_TRUE(train(2, "0.9") == average) << "a run that did not resume has the same";
}

// "4.7 MB are kept, and by the formula it should be 3.2": the formula omitted averages.
TEST_F(EvaluationTest, AMovingAverageIsInTheFormulaOfWhatIsKept) {
  for (const char* zero : {"0", "1", "3"}) {
    SCOPED_TRACE(zero);
    TrainOk({"--dataset", "generated", "--model", "mlp-large", "--comm", "gloo", "--max-steps", "2",
             "--no-eval", "--zero", zero, "--ema", "0.9", "--metrics", dir_.Path("metrics")},
            2);
    const double formula = Metric("summary/state_formula_bytes");
    EXPECT_NEAR(Metric("summary/state_bytes") / formula, 1, 0.02) << formula;
  }
}

}  // namespace
}  // namespace muster::trainer
