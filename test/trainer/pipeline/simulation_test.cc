// Simulates schedules as with pencil and paper, and refuses impossible ones.
#include "trainer/pipeline/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kB = ActionKind::kBackward;

PipelineTimeline Played(const PipelineSchedule& schedule, const PassTimes& times = {}) {
  const auto timeline = Simulate(schedule, times);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : PipelineTimeline{};
}

PipelineSchedule Made(const std::string& name, const PipelineShape& shape) {
  const auto schedule = MakeSchedule(name, shape);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : PipelineSchedule{};
}

std::string SimulationRefusalOf(const PipelineSchedule& schedule) {
  const auto timeline = Simulate(schedule, {});
  EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(timeline.status().message());
}

// "F0 0-1, B0 3-5": the actions of a rank with their times.
std::string ReadSimulated(const RankTimeline& rank) {
  std::string text;
  for (const TimedAction& timed : rank.actions) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", std::string(1, LetterOf(timed.action.kind)),
                    timed.action.micro_batch, " ", timed.start.count(), "-", timed.end.count());
  }
  return text;
}

TEST(SimulationTest, TwoStagesAsOnPaper) {
  const auto timeline = Played(Made("1f1b", {.stages = 2, .micro_batches = 2}));
  EXPECT_EQ(ReadSimulated(timeline.ranks[0]), "F0 0-1, F1 1-2, B0 4-6, B1 7-9");
  EXPECT_EQ(ReadSimulated(timeline.ranks[1]), "F0 1-2, B0 2-4, F1 4-5, B1 5-7");
  EXPECT_EQ(timeline.step, Milliseconds(9));
  EXPECT_EQ(timeline.ranks[0].busy, Milliseconds(6));
  EXPECT_DOUBLE_EQ(timeline.bubble, 1 - 12.0 / 18);
  EXPECT_EQ(timeline.ranks[0].most_live, 2);
  EXPECT_EQ(timeline.ranks[1].most_live, 1);
}

TEST(SimulationTest, GradientsOfWeightsFillTheWait) {
  const auto timeline = Played(Made("zero-bubble", {.stages = 2, .micro_batches = 2}));
  EXPECT_EQ(ReadSimulated(timeline.ranks[0]), "F0 0-1, F1 1-2, B0 3-4, W0 4-5, B1 5-6, W1 6-7");
  EXPECT_EQ(ReadSimulated(timeline.ranks[1]), "F0 1-2, B0 2-3, F1 3-4, B1 4-5, W0 5-6, W1 6-7");
}

TEST(SimulationTest, TimesAndMessages) {
  const PassTimes times{.forward = Milliseconds(2),
                        .backward_input = Milliseconds(3),
                        .backward_weight = Milliseconds(1),
                        .message = Milliseconds(0.5)};
  auto timeline = Played(Made("gpipe", {.stages = 2, .micro_batches = 2}), times);
  EXPECT_EQ(ReadSimulated(timeline.ranks[0]), "F0 0-2, F1 2-4, B0 11-15, B1 15-19");
  EXPECT_EQ(ReadSimulated(timeline.ranks[1]), "F0 2.5-4.5, F1 4.5-6.5, B0 6.5-10.5, B1 10.5-14.5");

  // A chunk is a half of what a rank has, and nothing is sent from a rank to itself.
  timeline = Played(Made("interleaved", {.stages = 1, .chunks = 2, .micro_batches = 1}), times);
  EXPECT_EQ(ReadSimulated(timeline.ranks[0]), "F0 0-1, F0 1-2, B0 2-4, B0 4-6");
  EXPECT_DOUBLE_EQ(timeline.bubble, 0);
}

using Table = std::vector<std::tuple<std::string, PipelineShape>>;

// Every schedule in many shapes, those included that have fewer micro-batches than stages.
Table AllShapes() {
  Table table;
  for (const int stages : {1, 2, 3, 4, 7, 8}) {
    for (const int micro_batches : {1, 2, 3, 4, 5, 8, 16, 24, 56}) {
      for (const std::string name : {"gpipe", "1f1b", "zero-bubble"}) {
        table.emplace_back(name, PipelineShape{.stages = stages, .micro_batches = micro_batches});
      }
      for (const int chunks : {2, 3, 4}) {
        if (micro_batches % stages != 0) continue;
        table.emplace_back("interleaved", PipelineShape{stages, chunks, micro_batches});
      }
    }
  }
  return table;
}

// What a part has done to a micro-batch: which part, which micro-batch, and forward, B or W.
using Done = std::map<std::tuple<int, int, char>, TimedAction>;

Done WhatWasDone(const PipelineTimeline& timeline) {
  Done done;
  for (int rank = 0; rank < timeline.shape.stages; ++rank) {
    for (const TimedAction& timed : timeline.ranks[static_cast<std::size_t>(rank)].actions) {
      const int part = timeline.shape.PartOf(rank, timed.action.chunk);
      EXPECT_TRUE(
          done.emplace(std::tuple(part, timed.action.micro_batch, LetterOf(timed.action.kind)),
                       timed)
              .second);
    }
  }
  return done;
}

// Expects each action to begin when all that it needs has been done, and received.
void ExpectNothingTooEarly(const PipelineTimeline& timeline, Milliseconds message) {
  const Done done = WhatWasDone(timeline);
  const PipelineShape& shape = timeline.shape;
  for (const auto& [key, timed] : done) {
    const auto [part, micro_batch, letter] = key;
    std::vector<Milliseconds> needed;
    const auto need = [&](int which, char pass) {
      const bool sent = shape.RankOf(which) != shape.RankOf(part);
      needed.push_back(done.at({which, micro_batch, pass}).end + (sent ? message : 0 * message));
    };
    if (letter == 'F' && part > 0) need(part - 1, 'F');
    if (letter == 'B') need(part, 'F');
    if (letter == 'B' && part + 1 < shape.parts()) need(part + 1, 'B');
    if (letter == 'W') need(part, 'B');
    for (const Milliseconds end : needed) {
      EXPECT_GE(timed.start, end) << letter << micro_batch << " of part " << part;
    }
  }
}

TEST(SimulationTest, NothingIsUsedBeforeItIsThere) {
  const PassTimes times{.forward = Milliseconds(1),
                        .backward_input = Milliseconds(1.25),
                        .backward_weight = Milliseconds(0.75),
                        .message = Milliseconds(0.125)};
  for (const auto& [name, shape] : AllShapes()) {
    SCOPED_TRACE(
        absl::StrCat(name, " ", shape.stages, " ", shape.chunks, " ", shape.micro_batches));
    const PipelineTimeline timeline = Played(Made(name, shape), times);
    const int passes = name == "zero-bubble" ? 3 : 2;
    EXPECT_EQ(WhatWasDone(timeline).size(),
              static_cast<std::size_t>(shape.parts() * shape.micro_batches * passes));
    ExpectNothingTooEarly(timeline, times.message);
  }
}

TEST(SimulationTest, ARankDoesOneThingAtATimeInTheOrderOfTheSchedule) {
  for (const auto& [name, shape] : AllShapes()) {
    SCOPED_TRACE(
        absl::StrCat(name, " ", shape.stages, " ", shape.chunks, " ", shape.micro_batches));
    const PipelineSchedule schedule = Made(name, shape);
    const PipelineTimeline timeline = Played(schedule);
    Milliseconds last{0};
    for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
      RankActions actions;
      Milliseconds free{0};
      for (const TimedAction& timed : timeline.ranks[rank].actions) {
        EXPECT_GE(timed.start, free);
        free = timed.end;
        actions.push_back(timed.action);
      }
      EXPECT_EQ(actions, schedule.ranks[rank]);
      last = std::max(last, free);
    }
    EXPECT_EQ(timeline.step, last);
  }
}

TEST(SimulationTest, RanksThatWaitForEachOtherAreNamed) {
  // Rank 0 wants to go backward with micro-batch 0 before it has sent micro-batch 1, and rank 1
  // wants to go forward with micro-batch 1 before it has gone backward with 0.
  const PipelineSchedule schedule{PipelineKind::kGPipe,
                                  {.stages = 2, .micro_batches = 2},
                                  {{{kF, 0, 0}, {kB, 0, 0}, {kF, 0, 1}, {kB, 0, 1}},
                                   {{kF, 0, 0}, {kF, 0, 1}, {kB, 0, 0}, {kB, 0, 1}}}};
  EXPECT_EQ(SimulationRefusalOf(schedule),
            "play a pipeline schedule: it waits for itself, rank 0 for rank 1 before the backward "
            "of micro-batch 0, rank 1 for rank 0 before the forward of micro-batch 1");
}

TEST(SimulationTest, OnlyThoseInTheCircleAreNamed) {
  // Ranks 1 and 2 wait for each other; ranks 0 and 3 only for them.
  const RankActions forward_first{{kF, 0, 0}, {kF, 0, 1}, {kB, 0, 0}, {kB, 0, 1}};
  const RankActions one_by_one{{kF, 0, 0}, {kB, 0, 0}, {kF, 0, 1}, {kB, 0, 1}};
  const PipelineSchedule schedule{PipelineKind::kGPipe,
                                  {.stages = 4, .micro_batches = 2},
                                  {forward_first, one_by_one, forward_first, one_by_one}};
  EXPECT_EQ(SimulationRefusalOf(schedule),
            "play a pipeline schedule: it waits for itself, rank 1 for rank 2 before the backward "
            "of micro-batch 0, rank 2 for rank 1 before the forward of micro-batch 1");
}

TEST(SimulationTest, ARankThatWaitsForItselfIsNamed) {
  const PipelineSchedule schedule{PipelineKind::kInterleaved,
                                  {.stages = 1, .chunks = 2, .micro_batches = 1},
                                  {{{kF, 1, 0}, {kF, 0, 0}, {kB, 1, 0}, {kB, 0, 0}}}};
  EXPECT_EQ(
      SimulationRefusalOf(schedule),
      "play a pipeline schedule: it waits for itself, rank 0 for rank 0 before the forward of "
      "micro-batch 0 in chunk 1");
}

TEST(SimulationTest, AnyTwoActionsOfARankThatChangePlacesAreFoundOrDoNoHarm) {
  // Goal: no order that uses a result too early passes. Method: every swap of two neighbours on one
  // rank of each schedule is either refused, or simulated without using anything too early.
  int refused = 0;
  int played = 0;
  for (const std::string name : {"gpipe", "1f1b", "interleaved", "zero-bubble"}) {
    const PipelineShape shape{
        .stages = 3, .chunks = name == "interleaved" ? 2 : 1, .micro_batches = 6};
    const PipelineSchedule schedule = Made(name, shape);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::size_t place = 1; place < schedule.ranks[rank].size(); ++place) {
        PipelineSchedule changed = schedule;
        std::swap(changed.ranks[rank][place - 1], changed.ranks[rank][place]);
        const auto timeline = Simulate(changed, {});
        ++(timeline.ok() ? played : refused);
        if (timeline.ok()) ExpectNothingTooEarly(*timeline, Milliseconds(0));
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(played, 0);
}

TEST(SimulationTest, WhatARankCannotDoIsRefused) {
  const auto refusal = [](const RankActions& actions) {
    return SimulationRefusalOf(
        {PipelineKind::kGPipe, {.stages = 1, .micro_batches = 2}, {actions}});
  };
  EXPECT_EQ(refusal({{kF, 0, 0}, {kB, 0, 1}, {kF, 0, 1}, {kB, 0, 0}}),
            "check a pipeline schedule: rank 0 does the backward of micro-batch 1 before the "
            "forward of micro-batch 1");
  EXPECT_EQ(
      refusal({{kF, 0, 0}, {ActionKind::kBackwardWeight, 0, 0}}),
      "check a pipeline schedule: rank 0 does the backward of weights of micro-batch 0 before "
      "the backward of inputs of micro-batch 0");
  EXPECT_EQ(refusal({{kF, 0, 0}, {kF, 0, 0}}),
            "check a pipeline schedule: rank 0 does the forward of micro-batch 0 twice");
  EXPECT_EQ(
      refusal({{kF, 0, 0}, {kB, 0, 0}, {ActionKind::kBackwardWeight, 0, 0}}),
      "check a pipeline schedule: rank 0 does the backward of weights of micro-batch 0 twice");
  EXPECT_EQ(refusal({{kF, 0, 0}, {kB, 0, 0}}),
            "check a pipeline schedule: rank 0 never does the forward of micro-batch 1");
  EXPECT_EQ(
      refusal({{kF, 0, 0}, {kF, 0, 1}, {kB, 0, 0}, {ActionKind::kBackwardInput, 0, 1}}),
      "check a pipeline schedule: rank 0 never does the backward of weights of micro-batch 1");
  EXPECT_EQ(refusal({{kF, 0, 2}}),
            "check a pipeline schedule: rank 0 has micro-batch 2 in chunk 0, but there are 2 "
            "micro-batches and 1 chunk");
  EXPECT_EQ(SimulationRefusalOf({PipelineKind::kGPipe, {.stages = 2, .micro_batches = 1}, {{}}}),
            "check a pipeline schedule: it is for 1 rank, and the stages are 2");
}

}  // namespace
}  // namespace muster::trainer
