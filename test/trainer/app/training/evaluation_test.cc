// What the test at the end of an epoch says of the model that is saved.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/temp_dir.h"
#include "test/trainer/app/ranks.h"

namespace muster::trainer {
namespace {

class EvaluationTest : public testing::Test {
 protected:
  // Two steps of a network with batch normalization, in float64 so that the number of ranks does
  // not show in the rounding.
  std::vector<std::string> Training(const std::string& name,
                                    const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"--dataset",        "generated",
                                          "--model",          "resnet18",
                                          "--stem",           "imagenet",
                                          "--dtype",          "float64",
                                          "--comm",           "gloo",
                                          "--max-steps",      "2",
                                          "--batch-size",     "8",
                                          "--checkpoint",     dir_.Path("model.pt"),
                                          "--checkpoint-dir", dir_.Path(name),
                                          "--metrics",        dir_.Path("metrics")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The last one that was measured.
  double TestLoss() const {
    double loss = -1;
    std::ifstream file(dir_.Path("metrics"));
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line, nullptr, false);
      if (record.contains("test/loss")) loss = record["test/loss"];
    }
    return loss;
  }

  const test::TempDir dir_;
};

// "Two ranks said 61.2 %, and the checkpoint that they wrote has 60.8 %": each rank had measured
// with running statistics of its own.
TEST_F(EvaluationTest, WhatIsMeasuredIsWhatIsSaved) {
  for (const std::vector<std::string>& way :
       std::vector<std::vector<std::string>>{{}, {"--no-broadcast-buffers"}}) {
    const std::string name = way.empty() ? "default" : way[0];
    SCOPED_TRACE(name);
    TrainOk(Training(name, way), 2);
    const double measured = TestLoss();
    // Nothing is left to train, so that this measures what was saved.
    TrainOk(Training(name, way), 1);
    EXPECT_NEAR(TestLoss(), measured, 1e-9);
  }
}

}  // namespace
}  // namespace muster::trainer
