// What a user of muster-train schedule sees.
#include "trainer/app/commands.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"

#include "test/support/command.h"
#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

class ScheduleTest : public testing::Test {
 protected:
  absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"schedule"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    out_.str("");
    return RunSchedule(static_cast<int>(argv.size()), argv.data(), /*width=*/120, out_);
  }
  // Its output.
  std::string Printed(const std::vector<std::string>& arguments) {
    const auto code = Run(arguments);
    EXPECT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(code.value_or(-1), 0);
    return out_.str();
  }
  // Its error; it must not have printed anything else.
  std::string RefusalOf(const std::vector<std::string>& arguments) {
    const auto code = Run(arguments);
    EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(out_.str(), "");
    return std::string(code.status().message());
  }

  const test::TempDir dir_;
  std::ostringstream out_;
};

constexpr char kFootnote[] =
    "p stages, v chunks, m micro-batches; live are those that a rank has gone forward with and not "
    "yet\nbackward, the most of each rank\n";

TEST_F(ScheduleTest, TimelineAndCosts) {
  EXPECT_EQ(Printed({"--stages", "2", "--micro-batches", "3", "--schedule", "1f1b"}),
            "1f1b: 2 stages, 3 micro-batches; forward 1 ms, backward 2 ms\n\n"
            "rank 0  F0 F1       B0--- F2 B1---    B2---\n"
            "rank 1     F0 B0--- F1 B1--- F2 B2---\n\n"
            "F forward, B backward, blank: the bubble; numbers are micro-batches\n\n"
            "step       12 ms, 9 ms of work on each rank\n"
            "           simulated   theory\n"
            "bubble     25.0 %      25.0 % = (p - 1)/(m + p - 1)\n"
            "most live  2, 1        2, 1 = min(m, p - rank)\n" +
                std::string(kFootnote));
}

TEST_F(ScheduleTest, ZeroBubbleWithTimesOfItsOwn) {
  // T = max(F, B, F + B - W) = 3, plus 3 * 5 of work: 3/18 = 16.7 %.
  EXPECT_EQ(
      Printed({"--stages=2", "--micro-batches=3", "--schedule=zero-bubble", "--forward=2",
               "--backward=2", "--weight=1"}),
      "zero-bubble: 2 stages, 3 micro-batches; forward 2 ms, backward of inputs 2 ms, of "
      "weights 1 ms\n\n"
      "rank 0  F0--- F1---       B0--- W0 F2--- B1--- W1    B2--- W2\n"
      "rank 1        F0--- B0--- F1--- B1--- W0 F2--- B2--- W1 W2\n\n"
      "F forward, B backward of inputs, W backward of weights, blank: the bubble; numbers are "
      "micro-batches\n\n"
      "step       18 ms, 15 ms of work on each rank\n"
      "           simulated   theory\n"
      "bubble     16.7 %      16.7 % = T/(m (F + B + W) + T), T = (p - 1) max(F, B, F + B - "
      "W)\n"
      "most live  2, 2        2, 2 = min(m, p)\n" +
          std::string(kFootnote));
}

TEST_F(ScheduleTest, InterleavedHasTwoChunksUnlessTold) {
  std::string text = Printed({"--schedule", "interleaved"});
  EXPECT_TRUE(absl::StartsWith(text, "interleaved: 4 stages of 2 chunks, 8 micro-batches; "))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "\nbubble     15.8 %               15.8 % = ")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nmost live  5.5, 4.5, 3.5, 2.5   5.5, 4.5, 3.5, 2.5 = "))
      << text;
  text = Printed({"--schedule", "interleaved", "--chunks", "4"});
  EXPECT_TRUE(absl::StartsWith(text, "interleaved: 4 stages of 4 chunks, ")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nbubble     8.6 % ")) << text;
}

TEST_F(ScheduleTest, MessagesCostTimeThatTheoryLeavesOut) {
  const std::string text =
      Printed({"--stages", "2", "--micro-batches", "1", "--schedule", "gpipe", "--message", "2"});
  EXPECT_TRUE(absl::StrContains(text, ", message 2 ms\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nstep       10 ms, 3 ms of work on each rank\n")) << text;
  EXPECT_TRUE(
      absl::StrContains(text, " theory, without messages\nbubble     70.0 %      50.0 % = "))
      << text;
}

TEST_F(ScheduleTest, WhereThereIsNoFormulaItSaysSo) {
  const std::string text =
      Printed({"--stages", "4", "--micro-batches", "2", "--schedule", "zero-bubble"});
  // 2 p - 1 + 2 m = 11 ms, of which 6 are work.
  EXPECT_TRUE(absl::StrContains(
      text, "\nbubble     45.5 %       only for at least as many micro-batches as stages\n"))
      << text;
}

TEST_F(ScheduleTest, ThePictureShowsTheSame) {
  const std::string path = dir_.Path("step.svg");
  const std::string text = Printed({"--schedule", "zero-bubble", "--svg", path});
  EXPECT_TRUE(absl::EndsWith(text, "\npicture    " + path + "\n")) << text;
  const std::string svg = test::ReadAll(path);
  EXPECT_TRUE(absl::StartsWith(svg, "<svg ")) << svg;
  EXPECT_TRUE(absl::StrContains(svg, ">zero-bubble: 4 stages, 8 micro-batches; bubble 11.1 %<"))
      << svg;
  EXPECT_TRUE(absl::StrContains(
      svg, "<title>rank 3: the backward of weights of micro-batch 7, 26 to 27 ms</title>"))
      << svg;
}

TEST_F(ScheduleTest, MistakesAreOneSentence) {
  EXPECT_EQ(RefusalOf({"--schedule", "interleaved", "--stages", "4", "--micro-batches", "6"}),
            "make the schedule interleaved: the number of micro-batches, 6, must be a multiple of "
            "that of stages, 4, such as 4 or 8");
  EXPECT_EQ(RefusalOf({"--schedule", "pipedream"}),
            "schedule: --schedule: pipedream is not one of 1f1b|gpipe|interleaved|zero-bubble; "
            "--help lists the flags");
  EXPECT_EQ(RefusalOf({"--stages", "0"}),
            "schedule: --stages: '0' is not a whole number from 1 to 256; --help lists the flags");
  EXPECT_EQ(RefusalOf({"--forward", "0"}),
            "schedule: --forward: '0' is not a number from 0.001 to 1000000; --help lists the "
            "flags");
  EXPECT_EQ(
      RefusalOf({"--chunks", "2"}),
      "make the schedule 1f1b: it has 1 chunk on each rank, not 2; only interleaved has more");
}

TEST_F(ScheduleTest, APictureThatCannotBeIsRefusedBeforeAnythingIsPrinted) {
  const std::string path = dir_.Path("step.svg");
  EXPECT_EQ(RefusalOf({"--stages", "64", "--micro-batches", "1024", "--svg", path}),
            "draw " + path +
                ": the step has 131072 actions, and a picture can have 50000; take fewer stages, "
                "chunks or micro-batches");
  EXPECT_FALSE(std::filesystem::exists(path));
  const std::string nowhere = dir_.Path("none/step.svg");
  EXPECT_EQ(RefusalOf({"--svg", nowhere}), "write " + nowhere + ": No such file or directory");
}

TEST_F(ScheduleTest, ItIsACommandOfTheProgram) {
  test::Command good(MusterTrainWith({"schedule", "--stages", "2", "--micro-batches", "2"}));
  EXPECT_EQ(good.Wait(std::chrono::seconds(60)), 0) << good.err();
  EXPECT_TRUE(absl::StartsWith(good.out(), "1f1b: 2 stages, 2 micro-batches; ")) << good.out();
  test::Command bad(MusterTrainWith({"schedule", "--stages", "none"}));
  EXPECT_EQ(bad.Wait(std::chrono::seconds(60)), 2);
  EXPECT_EQ(bad.err(),
            "muster-train: schedule: --stages: 'none' is not a whole number from 1 to 256; --help "
            "lists the flags\n");
  test::Command help(MusterTrainWith({"--help"}));
  EXPECT_EQ(help.Wait(std::chrono::seconds(60)), 0);
  EXPECT_TRUE(absl::StrContains(help.out(), "`schedule` shows how the ranks of a pipeline"))
      << help.out();
}

}  // namespace
}  // namespace muster::trainer
