// The order of each schedule, read off as the figures of the papers show it (there micro-batches
// are numbered from 1).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

// "F0 F1 B0 ..."; where a rank has several chunks "F0.1" is micro-batch 0 in chunk 1.
std::string Read(const RankActions& actions, int chunks) {
  std::string text;
  for (const PipelineAction& action : actions) {
    absl::StrAppend(&text, text.empty() ? "" : " ", std::string(1, LetterOf(action.kind)),
                    action.micro_batch, chunks > 1 ? absl::StrCat(".", action.chunk) : "");
  }
  return text;
}

std::vector<std::string> Read(const std::string& name, const PipelineShape& shape) {
  const auto schedule = MakeSchedule(name, shape);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return {};
  EXPECT_EQ(schedule->shape, shape);
  std::vector<std::string> ranks;
  for (const RankActions& actions : schedule->ranks) ranks.push_back(Read(actions, shape.chunks));
  return ranks;
}

std::string RefusalOf(const std::string& name, const PipelineShape& shape) {
  const auto schedule = MakeSchedule(name, shape);
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(schedule.status().message());
}

TEST(SchedulesTest, GPipeGoesForwardWithAllThenBackwardWithAll) {
  const std::string each = "F0 F1 F2 B0 B1 B2";
  EXPECT_EQ(Read("gpipe", {.stages = 2, .micro_batches = 3}), (std::vector{each, each}));
}

TEST(SchedulesTest, OneForwardOneBackwardIsThatOfTheFigure) {
  // Figure 4 of Narayanan et al. 2021 (Megatron-LM), upper half.
  EXPECT_EQ(Read("1f1b", {.stages = 4, .micro_batches = 8}),
            (std::vector<std::string>{"F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7",
                                      "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7",
                                      "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7",
                                      "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"}));
}

TEST(SchedulesTest, FewerMicroBatchesThanStages) {
  EXPECT_EQ(Read("1f1b", {.stages = 4, .micro_batches = 2}),
            (std::vector<std::string>{"F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"}));
  EXPECT_EQ(Read("zero-bubble", {.stages = 3, .micro_batches = 1}),
            (std::vector<std::string>{"F0 B0 W0", "F0 B0 W0", "F0 B0 W0"}));
}

TEST(SchedulesTest, InterleavedIsThatOfTheFigure) {
  // Figure 4 of Narayanan et al. 2021 (Megatron-LM), lower half: the first and the last device.
  const auto ranks = Read("interleaved", {.stages = 4, .chunks = 2, .micro_batches = 8});
  ASSERT_EQ(ranks.size(), 4u);
  EXPECT_EQ(ranks[0],
            "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1 F4.0 F5.0 F6.0 B0.1 F7.0 B1.1 F4.1 B2.1 "
            "F5.1 B3.1 F6.1 B0.0 F7.1 B1.0 B2.0 B3.0 B4.1 B5.1 B6.1 B7.1 B4.0 B5.0 B6.0 B7.0");
  EXPECT_EQ(ranks[3],
            "F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 F4.0 B0.0 F5.0 B1.0 "
            "F6.0 B2.0 F7.0 B3.0 F4.1 B4.1 F5.1 B5.1 F6.1 B6.1 F7.1 B7.1 B4.0 B5.0 B6.0 B7.0");
}

TEST(SchedulesTest, ZeroBubbleIsH1OfTheFigure) {
  // Qi et al. 2023, the figure of ZB-H1: four stages, eight micro-batches.
  EXPECT_EQ(Read("zero-bubble", {.stages = 4, .micro_batches = 8}),
            (std::vector<std::string>{
                "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7",
                "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7",
                "F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7",
                "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7"}));
}

TEST(SchedulesTest, OneStageHasNobodyToWaitFor) {
  EXPECT_EQ(Read("1f1b", {.stages = 1, .micro_batches = 2}),
            (std::vector<std::string>{"F0 B0 F1 B1"}));
  EXPECT_EQ(Read("zero-bubble", {.stages = 1, .micro_batches = 2}),
            (std::vector<std::string>{"F0 B0 W0 F1 B1 W1"}));
  EXPECT_EQ(Read("interleaved", {.stages = 1, .chunks = 2, .micro_batches = 2}),
            (std::vector<std::string>{"F0.0 F0.1 B0.1 F1.0 B0.0 F1.1 B1.1 B1.0"}));
}

TEST(SchedulesTest, NamesThatThereAre) {
  EXPECT_EQ(ScheduleNames(),
            (std::vector<std::string>{"1f1b", "gpipe", "interleaved", "zero-bubble"}));
  for (const std::string& name : ScheduleNames()) {
    const int chunks = name == "interleaved" ? 2 : 1;
    EXPECT_TRUE(MakeSchedule(name, {.stages = 2, .chunks = chunks, .micro_batches = 4}).ok());
  }
  EXPECT_EQ(RefusalOf("gpipes", {}),
            "make a pipeline schedule: there is none with the name 'gpipes'; the names are 1f1b, "
            "gpipe, interleaved, zero-bubble");
}

TEST(SchedulesTest, ShapesThatDoNotFitAreRefused) {
  EXPECT_EQ(RefusalOf("interleaved", {.stages = 4, .chunks = 2, .micro_batches = 6}),
            "make the schedule interleaved: the number of micro-batches, 6, must be a multiple of "
            "that of stages, 4, such as 4 or 8");
  EXPECT_EQ(RefusalOf("interleaved", {.stages = 4, .chunks = 2, .micro_batches = 3}),
            "make the schedule interleaved: the number of micro-batches, 3, must be a multiple of "
            "that of stages, 4, such as 4");
  EXPECT_EQ(RefusalOf("interleaved", {.stages = 4, .micro_batches = 8}),
            "make the schedule interleaved: it needs 2 chunks or more on each rank; with 1 it "
            "would be 1f1b");
  EXPECT_EQ(RefusalOf("zero-bubble", {.stages = 4, .chunks = 2, .micro_batches = 8}),
            "make the schedule zero-bubble: it has 1 chunk on each rank, not 2; only interleaved "
            "has more");
  EXPECT_EQ(RefusalOf("gpipe", {.stages = 0, .micro_batches = -1}),
            "make the schedule gpipe: stages, chunks and micro-batches must be 1 or more, and are "
            "0, 1 and -1");
}

TEST(SchedulesTest, AnEvaluationGoesForwardInGroups) {
  EXPECT_EQ(Read(ForwardActions({.stages = 4, .micro_batches = 5}), 1), "F0 F1 F2 F3 F4");
  EXPECT_EQ(Read(ForwardActions({.stages = 2, .chunks = 2, .micro_batches = 3}), 2),
            "F0.0 F1.0 F0.1 F1.1 F2.0 F2.1");
}

}  // namespace
}  // namespace muster::trainer
