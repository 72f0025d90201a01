#include "trainer/worker/step_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace muster::trainer {
namespace {

Standing At(int epoch, std::int64_t step) {
  return {.epoch = epoch,
          .epochs = 2,
          .step = step,
          .steps = 200,
          .loss = 0.51234,
          .samples_per_second = 1234.5,
          .seconds_left = 185};
}

TEST(ProgressTest, ALogGetsOneLineForEachTenthOfAnEpoch) {
  std::ostringstream out;
  Progress progress(out, /*terminal=*/false);
  for (int epoch = 1; epoch <= 2; ++epoch) {
    for (std::int64_t step = 1; step <= 200; ++step) progress.Show(At(epoch, step));
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20) << text;
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "epoch 1/2:  10 %, step 20/200, loss 0.5123, 1234 images/s, 3 min 05 s left");
  EXPECT_NE(text.find("epoch 2/2: 100 %, step 200/200"), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

// The caller restarts its mean loss with each line shown, and only then.
TEST(ProgressTest, SaysWhetherItHasShownAnything) {
  std::ostringstream out;
  Progress progress(out, /*terminal=*/false);
  EXPECT_FALSE(progress.Show(At(1, 19)));
  EXPECT_TRUE(progress.Show(At(1, 20)));
  EXPECT_FALSE(progress.Show(At(1, 21)));
}

TEST(ProgressTest, TimeIsTwoUnitsAtMost) {
  EXPECT_EQ(FormatSeconds(-1), "0 s");
  EXPECT_EQ(FormatSeconds(59.4), "59 s");
  EXPECT_EQ(FormatSeconds(59.6), "1 min 00 s");
  EXPECT_EQ(FormatSeconds(7505), "2 h 05 min");
}

TEST(ProgressTest, TheLastStepIsShownHoweverFewThereAre) {
  std::ostringstream out;
  Progress progress(out, /*terminal=*/false);
  progress.Show({.step = 1, .steps = 1, .loss = 2, .samples_per_second = 10, .unit = "windows"});
  EXPECT_EQ(out.str(), "epoch 1/1: 100 %, step 1/1, loss 2.0000, 10 windows/s, 0 s left\n");
}

TEST(ProgressTest, ATerminalGetsABarThatEndsItsLineWithTheEpoch) {
  std::ostringstream out;
  Progress progress(out, /*terminal=*/true);
  progress.Show(At(1, 100));
  EXPECT_EQ(
      out.str(),
      "\repoch 1/2 [############............] 100/200, loss 0.5123, 1234 images/s, 3 min 05 s "
      "left\x1b[K");
  progress.Show(At(1, 200));
  EXPECT_EQ(out.str().back(), '\n');
}

TEST(ProgressTest, ALineOfItsOwnDoesNotLandInTheBar) {
  std::ostringstream out;
  Progress progress(out, /*terminal=*/true);
  progress.Show(At(1, 100));
  progress.Say("saved");
  const std::string text = out.str();
  EXPECT_EQ(text.substr(text.size() - 7), "\nsaved\n");
}

}  // namespace
}  // namespace muster::trainer
