#include "trainer/pipeline/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

std::string DrawnAsText(const std::string& name, const PipelineShape& shape,
                        const PassTimes& times = {}, int width = 120) {
  const auto schedule = MakeSchedule(name, shape);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const auto timeline = Simulate(*schedule, times);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return TimelineText(*timeline, width);
}

TEST(TimelineTextTest, ALineForEachRank) {
  EXPECT_EQ(DrawnAsText("1f1b", {.stages = 2, .micro_batches = 2}),
            "rank 0  F0 F1       B0---    B1---\n"
            "rank 1     F0 B0--- F1 B1---\n");
  EXPECT_EQ(DrawnAsText("zero-bubble", {.stages = 2, .micro_batches = 2}),
            "rank 0  F0 F1    B0 W0 B1 W1\n"
            "rank 1     F0 B0 F1 B1 W0 W1\n");
}

TEST(TimelineTextTest, ChunksAreLettersAndNumbersWhereLettersDoNotSuffice) {
  EXPECT_EQ(DrawnAsText("interleaved", {.stages = 2, .chunks = 2, .micro_batches = 2}),
            "rank 0  F0a F1a F0b F1b         B0b----     B1b---- B0a---- B1a----\n"
            "rank 1      F0a F1a F0b B0b---- F1b B1b---- B0a---- B1a----\n");
  const std::string many =
      DrawnAsText("interleaved", {.stages = 1, .chunks = 27, .micro_batches = 1});
  EXPECT_TRUE(absl::StartsWith(many, "rank 0  F0.0- F0.1- ")) << many;
  EXPECT_TRUE(absl::StrContains(many, " F0.26 B0.26------ B0.25------ ")) << many;
}

TEST(TimelineTextTest, ColumnsAreTime) {
  // A forward takes three columns, and so does a message; a backward takes nine.
  const PassTimes times{.forward = Milliseconds(2),
                        .backward_input = Milliseconds(2),
                        .backward_weight = Milliseconds(4),
                        .message = Milliseconds(2)};
  EXPECT_EQ(DrawnAsText("gpipe", {.stages = 2, .micro_batches = 1}, times),
            "rank 0  F0                   B0------\n"
            "rank 1        F0 B0------\n");
}

TEST(TimelineTextTest, RanksOfTwoDigitsStayInLine) {
  const std::string text = DrawnAsText("gpipe", {.stages = 11, .micro_batches = 1});
  EXPECT_TRUE(absl::StartsWith(text, "rank 0   F0 ")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nrank 10 " + std::string(31, ' ') + "F0 B0---\n")) << text;
}

TEST(TimelineTextTest, WhatIsTooWideIsCutBetweenActions) {
  EXPECT_EQ(DrawnAsText("zero-bubble", {.stages = 2, .micro_batches = 3}, {}, 24),
            "rank 0  F0 F1    B0 W0\n"
            "rank 1     F0 B0 F1 B1\n"
            "from 5 ms\n"
            "rank 0  F2 B1 W1 B2 W2\n"
            "rank 1  W0 F2 B2 W1 W2\n");
}

TEST(TimelineTextTest, NoLineIsWiderThanAskedFor) {
  for (const int width : {57, 80, 120}) {
    const std::string text =
        DrawnAsText("interleaved", {.stages = 4, .chunks = 3, .micro_batches = 16},
                    {.forward = Milliseconds(1.3)}, width);
    std::size_t widest = 0;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
      widest = std::max(widest, line.size());
    }
    EXPECT_LE(widest, static_cast<std::size_t>(width)) << text;
    EXPECT_GE(widest, static_cast<std::size_t>(width) * 2 / 3) << text;
  }
}

TEST(TimelineTextTest, ALongStepIsNotDrawnToItsEnd) {
  const std::string text = DrawnAsText("gpipe", {.stages = 1, .micro_batches = 1000});
  EXPECT_TRUE(absl::StrContains(text, "\nwhat follows, from ")) << text;
  EXPECT_TRUE(absl::EndsWith(text, " to 3000 ms, is not drawn\n")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 * 12);
}

TEST(TimelineTextTest, AMomentBesideAnAgeDoesNotMakeTheDrawingLong) {
  const PassTimes times{.forward = Milliseconds(0.001),
                        .backward_input = Milliseconds(1000),
                        .backward_weight = Milliseconds(1000)};
  const std::string text = DrawnAsText("gpipe", {.stages = 1, .micro_batches = 1}, times);
  EXPECT_EQ(text, "rank 0  B0" + std::string(57, '-') + "\n");
}

}  // namespace
}  // namespace muster::trainer
