// muster-train --recompute: the losses of the same run without it, bit for bit.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test/support/command.h"
#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

class RecomputeFlagTest : public testing::Test {
 protected:
  std::string Losses(std::vector<std::string> arguments, int ranks) const {
    arguments.insert(arguments.end(), {"--dataset", "generated", "--max-steps", "3", "--no-eval",
                                       "--loss-log", dir_.Path("losses")});
    TrainOk(arguments, ranks);
    std::ifstream file(dir_.Path("losses"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void ExpectSame(std::vector<std::string> arguments, int ranks) const {
    const std::string kept = Losses(arguments, ranks);
    arguments.emplace_back("--recompute");
    EXPECT_NE(kept, "");
    EXPECT_EQ(Losses(arguments, ranks), kept);
  }

  const std::vector<std::string> gpt_ = {"--model", "gpt", "--layers",  "3",  "--width",      "16",
                                         "--heads", "2",   "--context", "16", "--batch-size", "16"};
  const test::TempDir dir_;
};

std::vector<std::string> operator+(std::vector<std::string> arguments,
                                   const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(RecomputeFlagTest, LossesAreThoseWithout) {
  ExpectSame(gpt_ + std::vector<std::string>{"--accumulate", "2"}, 2);
  ExpectSame(gpt_ + std::vector<std::string>{"--bf16"}, 1);
  ExpectSame(gpt_ + std::vector<std::string>{"--parallel", "average"}, 2);
  ExpectSame(gpt_ + std::vector<std::string>{"--parallel", "threads"}, 1);
}

// With --recompute --sync-bn and ranks on one host, losses differed from run to run, because a
// recomputed pass gathered statistics while gradients were being averaged.
TEST_F(RecomputeFlagTest, SynchronizedStatisticsAreGatheredBesideGradients) {
  ExpectSame({"--model", "resnet18", "--batch-size", "4", "--sync-bn", "--comm", "shm"}, 2);
}

TEST_F(RecomputeFlagTest, WhatItCannotDoIsOneSentence) {
  test::Command train(MusterTrainWith({"--recompute", "--static-graph"}));
  EXPECT_EQ(train.Wait(), 2);
  EXPECT_NE(train.err().find("--recompute runs backward within the backward pass, which "
                             "--static-graph cannot follow"),
            std::string::npos)
      << train.err();
}

}  // namespace
}  // namespace muster::trainer
