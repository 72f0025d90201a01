// The simulation meets the papers' formulas, and both meet numbers worked out by hand.
#include "trainer/pipeline/simulation.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

struct Case {
  std::string name;
  PipelineShape shape;
  double bubble;
};

PipelineTimeline PlayedByTheory(const PipelineSchedule& schedule, const PassTimes& times = {}) {
  const auto timeline = Simulate(schedule, times);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : PipelineTimeline{};
}

PipelineSchedule MadeByTheory(const std::string& name, const PipelineShape& shape) {
  const auto schedule = MakeSchedule(name, shape);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : PipelineSchedule{};
}

std::string Named(const std::string& name, const PipelineShape& shape) {
  return absl::StrCat(name, ", p = ", shape.stages, ", v = ", shape.chunks,
                      ", m = ", shape.micro_batches);
}

TEST(TheoryTest, BubblesToThreeDigits) {
  const std::vector<Case> cases = {
      // (p - 1)/(m + p - 1)
      {"gpipe", {2, 1, 4}, 0.200},
      {"gpipe", {4, 1, 8}, 0.273},
      {"gpipe", {4, 1, 2}, 0.600},
      {"gpipe", {8, 1, 32}, 0.179},
      {"1f1b", {1, 1, 8}, 0.000},
      {"1f1b", {2, 1, 4}, 0.200},
      {"1f1b", {4, 1, 2}, 0.600},
      {"1f1b", {4, 1, 8}, 0.273},
      {"1f1b", {8, 1, 32}, 0.179},
      // (p - 1)/(v m + p - 1)
      {"interleaved", {2, 2, 4}, 0.111},
      {"interleaved", {4, 2, 4}, 0.273},
      {"interleaved", {4, 2, 8}, 0.158},
      {"interleaved", {4, 4, 16}, 0.045},
      {"interleaved", {8, 3, 32}, 0.068},
      // (p - 1)/(3 m + p - 1)
      {"zero-bubble", {2, 1, 4}, 0.077},
      {"zero-bubble", {4, 1, 4}, 0.200},
      {"zero-bubble", {4, 1, 8}, 0.111},
      {"zero-bubble", {4, 1, 16}, 0.059},
      {"zero-bubble", {8, 1, 32}, 0.068},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(Named(c.name, c.shape));
    const PipelineSchedule schedule = MadeByTheory(c.name, c.shape);
    EXPECT_NEAR(PlayedByTheory(schedule).bubble, c.bubble, 0.0005);
    const BubbleTheory theory = TheoryOfBubble(schedule.kind, c.shape, {});
    ASSERT_TRUE(theory.share.has_value());
    EXPECT_NEAR(*theory.share, c.bubble, 0.0005);
  }
}

TEST(TheoryTest, AnyShapeAndAnyTimes) {
  const std::uint32_t seed = 20231130;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> small(1, 8);
  std::uniform_int_distribution<int> large(1, 40);
  std::uniform_real_distribution<double> milliseconds(0.1, 4);
  int formulas = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<std::string> names = ScheduleNames();
    const std::string& name = names[static_cast<std::size_t>(i) % names.size()];
    const bool interleaved = name == "interleaved";
    const int stages = small(random);
    const PipelineShape shape{stages, interleaved ? 1 + small(random) : 1,
                              interleaved ? stages * (1 + large(random) / stages) : large(random)};
    const PassTimes times{.forward = Milliseconds(milliseconds(random)),
                          .backward_input = Milliseconds(milliseconds(random)),
                          .backward_weight = Milliseconds(milliseconds(random))};
    SCOPED_TRACE(absl::StrCat(Named(name, shape), ", F = ", times.forward.count(),
                              ", B = ", times.backward_input.count(),
                              ", W = ", times.backward_weight.count()));
    const PipelineSchedule schedule = MadeByTheory(name, shape);
    const PipelineTimeline timeline = PlayedByTheory(schedule, times);
    const BubbleTheory theory = TheoryOfBubble(schedule.kind, shape, times);
    EXPECT_EQ(theory.share.has_value(),
              name != "zero-bubble" || shape.micro_batches >= shape.stages);
    if (theory.share) {
      EXPECT_NEAR(timeline.bubble, *theory.share, 1e-9);
      ++formulas;
    }
    for (int rank = 0; rank < shape.stages; ++rank) {
      EXPECT_EQ(timeline.ranks[static_cast<std::size_t>(rank)].most_live,
                TheoryOfLive(schedule.kind, shape, rank))
          << "rank " << rank;
    }
  }
  EXPECT_GT(formulas, 1500);
}

TEST(TheoryTest, ZeroBubbleIsThePapersFormulaWhileWeightsTakeNoLonger) {
  // T = (p - 1)(F + B - W) of table 2: 3 * (2 + 3 - 1.5) = 10.5, beside 8 * 6.5 of work.
  const PassTimes times{.forward = Milliseconds(2),
                        .backward_input = Milliseconds(3),
                        .backward_weight = Milliseconds(1.5)};
  const PipelineSchedule schedule = MadeByTheory("zero-bubble", {.stages = 4, .micro_batches = 8});
  EXPECT_NEAR(PlayedByTheory(schedule, times).bubble, 10.5 / 62.5, 1e-12);
}

TEST(TheoryTest, LiveMicroBatchesByHand) {
  const auto live = [](const std::string& name, const PipelineShape& shape) {
    std::vector<int> each;
    for (const RankTimeline& rank : PlayedByTheory(MadeByTheory(name, shape)).ranks)
      each.push_back(rank.most_live);
    return each;
  };
  EXPECT_EQ(live("gpipe", {4, 1, 8}), (std::vector{8, 8, 8, 8}));
  EXPECT_EQ(live("1f1b", {4, 1, 8}), (std::vector{4, 3, 2, 1}));
  EXPECT_EQ(live("1f1b", {4, 1, 2}), (std::vector{2, 2, 2, 1}));
  EXPECT_EQ(live("interleaved", {4, 2, 8}), (std::vector{11, 9, 7, 5}));
  EXPECT_EQ(live("interleaved", {4, 2, 4}), (std::vector{8, 8, 7, 5}));
  EXPECT_EQ(live("zero-bubble", {4, 1, 8}), (std::vector{4, 4, 4, 4}));
  EXPECT_EQ(live("zero-bubble", {4, 1, 2}), (std::vector{2, 2, 2, 2}));
}

}  // namespace
}  // namespace muster::trainer
