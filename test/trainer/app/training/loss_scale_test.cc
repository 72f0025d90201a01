// Losses scaled for the backward pass.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

using test::ReadAll;

class LossScaleTest : public testing::Test {
 protected:
  // With two ranks; writes the losses of all steps to the file `name`.
  std::string Losses(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments =
        test::Joined({"--dataset", "generated", "--model", "mlp", "--comm", "gloo", "--no-eval",
                      "--loss-log", dir_.Path(name)},
                     more);
    TrainOk(arguments, 2);
    return ReadAll(dir_.Path(name));
  }
  // The first step gives parameters with large gradients, and later ones hardly change them:
  // multiplied by 2^127 they overflow in float32, too.
  static std::vector<std::string> Steep(const std::vector<std::string>& more) {
    return test::Joined({"--lr", "50", "--schedule", "step", "--lr-gamma", "1e-9", "--lr-step-size",
                         "1", "--loss-scale", "1.7014118346046923e38"},
                        more);
  }
  // The values of `key` in the metrics.
  std::vector<double> Metrics(const std::string& key) const {
    std::vector<double> values;
    std::ifstream file(dir_.Path("metrics"));
    for (std::string line; std::getline(file, line);) {
      const auto report = nlohmann::json::parse(line);
      if (report.contains(key)) values.push_back(report[key]);
    }
    return values;
  }

  const test::TempDir dir_;
};

TEST_F(LossScaleTest, APowerOfTwoChangesNothing) {
  const std::vector<std::string> steps = {"--max-steps", "12",           "--clip",
                                          "0.5",         "--accumulate", "2"};
  std::vector<std::string> scaled = steps;
  scaled.insert(scaled.end(), {"--loss-scale", "1024", "--loss-scale-window", "4"});
  const std::string plain = Losses("plain", steps);
  EXPECT_NE(plain, "");
  EXPECT_EQ(Losses("scaled", scaled), plain);
}

TEST_F(LossScaleTest, StepsThatOverflowAreSkippedUntilTheScaleFits) {
  const std::vector<std::string> steep =
      Steep({"--max-steps", "16", "--report-every", "1", "--metrics", dir_.Path("metrics")});
  const std::string losses = Losses("steep", steep);
  const std::vector<double> scales = Metrics("train/loss_scale");
  ASSERT_EQ(scales.size(), 16u);
  const auto log2 = [](double scale) { return std::lround(std::log2(scale)); };
  EXPECT_EQ(log2(scales.front()), 127);
  EXPECT_LT(log2(scales.back()), 127);
  // None of the last steps has changed it.
  EXPECT_EQ(scales[13], scales[15]);
  EXPECT_EQ(Metrics("train/skipped_steps").back(), static_cast<double>(127 - log2(scales.back())));
  EXPECT_NE(losses, "");
}

// A resumed run would start with the initial scale again, and skip steps again.
TEST_F(LossScaleTest, AResumedRunGoesOnWithTheScale) {
  const auto until = [&](const std::string& step, const std::string& kept) {
    return Steep({"--loss-scale-window", "3", "--checkpoint-every", "0", "--max-steps", step,
                  "--checkpoint-dir", dir_.Path(kept)});
  };
  const std::string whole = Losses("whole", until("17", "kept-whole"));
  Losses("parts", until("9", "kept-parts"));
  EXPECT_EQ(Losses("parts", until("17", "kept-parts")), whole);
}

TEST_F(LossScaleTest, Float16NeedsAGpu) {
  Ranks ranks(MusterTrainWith({"--dataset", "generated", "--comm", "gloo", "--fp16"}), 1);
  EXPECT_EQ(ranks.Wait(), std::vector<int>{2});
  EXPECT_NE(ranks.errors().find("--fp16 computes on a GPU, and there is none: use --bf16"),
            std::string::npos)
      << ranks.errors();
}

}  // namespace
}  // namespace muster::trainer
