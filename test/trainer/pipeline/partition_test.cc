#include "trainer/pipeline/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace muster::trainer {
namespace {

using Begins = std::vector<std::size_t>;

Begins Cut(const std::vector<double>& costs, int parts) {
  const absl::StatusOr<Begins> cut = CutEvenly(costs, parts);
  EXPECT_TRUE(cut.ok()) << cut.status();
  return cut.ok() ? *cut : Begins();
}

// The costs of the parts, the most expensive first.
std::vector<double> PartCosts(const std::vector<double>& costs, const Begins& begins) {
  std::vector<double> parts(begins.size(), 0);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto part = std::upper_bound(begins.begin(), begins.end(), i) - begins.begin() - 1;
    parts[static_cast<std::size_t>(part)] += costs[i];
  }
  std::sort(parts.rbegin(), parts.rend());
  return parts;
}

TEST(PartitionTest, CutsByHand) {
  EXPECT_EQ(Cut({1, 1, 1, 1}, 2), (Begins{0, 2}));
  EXPECT_EQ(Cut({1, 1, 1, 1}, 4), (Begins{0, 1, 2, 3}));
  EXPECT_EQ(Cut({5}, 1), (Begins{0}));
  // A head that costs as much as three blocks.
  EXPECT_EQ(Cut({0, 1, 1, 1, 1, 1, 1, 3}, 3), (Begins{0, 4, 7}));
  // An expensive stage in the middle leaves 1 + 1 on either side.
  EXPECT_EQ(Cut({1, 1, 9, 1, 1}, 3), (Begins{0, 2, 3}));
  // The most expensive part costs 10 in any case; 4 and 4 are more equal than 2 and 6.
  EXPECT_EQ(Cut({10, 2, 2, 2, 2}, 3), (Begins{0, 1, 3}));
  // All the same: parts begin as early as they can.
  EXPECT_EQ(Cut({1, 1, 1}, 2), (Begins{0, 1}));
  // Stages that cost nothing are stages, too.
  EXPECT_EQ(Cut({0, 0, 0}, 3), (Begins{0, 1, 2}));
}

TEST(PartitionTest, NoOtherCutIsBetter) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int stages = std::uniform_int_distribution(1, 9)(random);
    const int parts = std::uniform_int_distribution(1, stages)(random);
    std::vector<double> costs;
    for (int i = 0; i < stages; ++i) costs.push_back(std::uniform_int_distribution(0, 9)(random));
    const std::vector<double> best = PartCosts(costs, Cut(costs, parts));
    const auto squares = [](const std::vector<double>& each) {
      double sum = 0;
      for (const double one : each) sum += one * one;
      return sum;
    };
    // All ways to choose where the parts after the first begin.
    for (unsigned chosen = 0; chosen < 1U << (stages - 1); ++chosen) {
      Begins begins = {0};
      for (int i = 1; i < stages; ++i) {
        if ((chosen >> (i - 1) & 1U) != 0) begins.push_back(static_cast<std::size_t>(i));
      }
      if (static_cast<int>(begins.size()) != parts) continue;
      const std::vector<double> other = PartCosts(costs, begins);
      ASSERT_LE(best[0], other[0]);
      if (best[0] == other[0]) {
        ASSERT_LE(squares(best), squares(other));
      }
    }
  }
}

TEST(PartitionTest, MistakesAreOneSentence) {
  EXPECT_EQ(CutEvenly({1, 1}, 3).status().message(),
            "cut a model of 2 stages into 3 parts: there can be 1 to as many as it has stages");
  EXPECT_FALSE(CutEvenly({1, 1}, 0).ok());
  EXPECT_FALSE(CutEvenly({}, 1).ok());
  EXPECT_EQ(CutEvenly({1, -1}, 1).status().message(), "cut a model: stage 1 cannot cost -1");
  EXPECT_FALSE(CutEvenly({std::numeric_limits<double>::quiet_NaN()}, 1).ok());
}

TEST(PartitionTest, CutsAtNames) {
  const std::vector<std::string> stages = {"wte", "h.0", "h.1", "h.2", "ln_f"};
  EXPECT_EQ(CutAt(stages, {}).value(), (Begins{0}));
  EXPECT_EQ(CutAt(stages, {"h.1", "ln_f"}).value(), (Begins{0, 2, 4}));
  EXPECT_EQ(CutAt(stages, {"h.3"}).status().message(),
            "begin a part with the stage 'h.3': there is none; the stages are wte, h.0, h.1, h.2, "
            "ln_f");
  EXPECT_EQ(CutAt(stages, {"h.2", "h.0"}).status().message(),
            "begin part 2 with the stage 'h.0': part 1 begins with 'h.2', which comes later");
  EXPECT_EQ(CutAt(stages, {"wte"}).status().message(),
            "begin part 1 with the stage 'wte': part 0 begins with 'wte', which is the same");
}

}  // namespace
}  // namespace muster::trainer
