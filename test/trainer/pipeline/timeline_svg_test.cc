#include "trainer/pipeline/timeline.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

std::string Drawn(const std::string& name, const PipelineShape& shape, const PassTimes& times = {},
                  const std::string& title = "title") {
  const auto schedule = MakeSchedule(name, shape);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const auto timeline = Simulate(*schedule, times);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return TimelineSvg(*timeline, title);
}

// The box of an action.
struct Box {
  std::string what;
  double x = 0;
  double y = 0;
  double width = 0;
  std::string color;
};

// What stands between `begin` and the next `end` behind it.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const std::size_t to = text.find(end, from + begin.size());
  return text.substr(from + begin.size(), to - from - begin.size());
}

// An action is a group with its name and its box.
std::vector<Box> BoxesOf(const std::string& svg) {
  std::vector<Box> boxes;
  const std::vector<std::string> groups = absl::StrSplit(svg, "<g><title>");
  for (std::size_t i = 1; i < groups.size(); ++i) {
    const std::string rect = Between(groups[i], "<rect", "/>");
    const auto number = [&](const char* name) { return std::stod(Between(rect, name, "\"")); };
    boxes.push_back({groups[i].substr(0, groups[i].find("</title>")), number(" x=\""),
                     number(" y=\""), number(" width=\""), Between(rect, " fill=\"", "\"")});
  }
  return boxes;
}

// Whether every element that begins ends, in the right order.
bool Closes(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (absl::EndsWith(tag, "/")) continue;
    if (!absl::StartsWith(tag, "/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
    } else if (open.empty() || open.back() != tag.substr(1)) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

TEST(TimelineSvgTest, EachActionIsABoxAtItsTimeInTheRowOfItsRank) {
  const std::string svg = Drawn("zero-bubble", {.stages = 2, .micro_batches = 2});
  const std::vector<Box> boxes = BoxesOf(svg);
  ASSERT_EQ(boxes.size(), 12u);
  EXPECT_EQ(boxes[0].what, "rank 0: the forward of micro-batch 0, 0 to 1 ms");
  EXPECT_EQ(boxes[2].what, "rank 0: the backward of inputs of micro-batch 0, 3 to 4 ms");
  EXPECT_EQ(boxes[11].what, "rank 1: the backward of weights of micro-batch 1, 6 to 7 ms");
  const double millisecond = boxes[1].x - boxes[0].x;
  EXPECT_GT(millisecond, 10);
  EXPECT_NEAR(boxes[2].x - boxes[0].x, 3 * millisecond, 0.02);
  EXPECT_NEAR(boxes[11].x - boxes[0].x, 6 * millisecond, 0.02);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_NEAR(boxes[i].width, millisecond - 1, 0.02);
    EXPECT_EQ(boxes[i].y, boxes[i < 6 ? 0 : 6].y);
  }
  EXPECT_GT(boxes[6].y, boxes[0].y + 20);
}

TEST(TimelineSvgTest, ColorsTellPassesAndChunksApart) {
  std::vector<Box> boxes = BoxesOf(Drawn("zero-bubble", {.stages = 1, .micro_batches = 1}));
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_NE(boxes[0].color, boxes[1].color);
  EXPECT_NE(boxes[1].color, boxes[2].color);
  EXPECT_NE(boxes[0].color, boxes[2].color);

  const std::string svg = Drawn("interleaved", {.stages = 1, .chunks = 2, .micro_batches = 1});
  boxes = BoxesOf(svg);
  ASSERT_EQ(boxes.size(), 4u);
  EXPECT_NE(boxes[0].color, boxes[1].color);
  EXPECT_NE(boxes[2].color, boxes[3].color);
  EXPECT_TRUE(absl::StrContains(svg, ">light to dark: chunk 0 to 1</text>")) << svg;
}

TEST(TimelineSvgTest, TheLegendNamesThePassesThatThereAre) {
  const std::string whole = Drawn("1f1b", {.stages = 2, .micro_batches = 2});
  EXPECT_TRUE(absl::StrContains(whole, ">forward</text>"));
  EXPECT_TRUE(absl::StrContains(whole, ">backward</text>"));
  EXPECT_FALSE(absl::StrContains(whole, ">backward of weights</text>"));
  const std::string split = Drawn("zero-bubble", {.stages = 2, .micro_batches = 2});
  EXPECT_TRUE(absl::StrContains(split, ">backward of inputs</text>"));
  EXPECT_TRUE(absl::StrContains(split, ">backward of weights</text>"));
}

TEST(TimelineSvgTest, TheAxisHasRoundTimes) {
  const std::string svg = Drawn("1f1b", {.stages = 4, .micro_batches = 8});  // 33 ms
  for (const char* time : {">0 ms<", ">5 ms<", ">30 ms<"}) {
    EXPECT_TRUE(absl::StrContains(svg, time)) << svg;
  }
  EXPECT_FALSE(absl::StrContains(svg, ">35 ms<")) << svg;
}

TEST(TimelineSvgTest, ItIsXml) {
  const std::string svg = Drawn("1f1b", {.stages = 3, .micro_batches = 2}, {}, "a < b & c > d");
  EXPECT_TRUE(absl::StartsWith(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" "));
  EXPECT_TRUE(absl::StrContains(svg, ">a &lt; b &amp; c &gt; d</text>")) << svg;
  EXPECT_TRUE(Closes(svg)) << svg;
}

TEST(TimelineSvgTest, ANumberThatDoesNotFitIsLeftOut) {
  const PassTimes times{.forward = Milliseconds(0.001),
                        .backward_input = Milliseconds(500),
                        .backward_weight = Milliseconds(500)};
  const std::string svg = Drawn("gpipe", {.stages = 1, .micro_batches = 1}, times);
  EXPECT_EQ(BoxesOf(svg).size(), 2u);
  const std::vector<std::string> numbered = absl::StrSplit(svg, "text-anchor=\"middle\">0</text>");
  EXPECT_EQ(numbered.size(), 2u) << svg;
}

}  // namespace
}  // namespace muster::trainer
