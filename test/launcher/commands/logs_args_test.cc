#include "launcher/commands/logs_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::launcher {
namespace {

using rendezvous::RankRange;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogsArgsTest : public ::testing::Test {
 protected:
  absl::StatusOr<LogsArgs> Parse(std::vector<std::string> args) {
    args.insert(args.begin(), "--rdzv-endpoint=h:1");
    return ParseLogsArgs(args, {}, now_, zone_);
  }
  std::string Mistake(std::vector<std::string> args) {
    return std::string(Parse(std::move(args)).status().message());
  }
  std::string Since(const std::string& text) {
    const auto ago = ParseSince(text, now_, zone_);
    return ago.ok() ? absl::FormatDuration(*ago) : std::string(ago.status().message());
  }

  const absl::TimeZone zone_ = absl::UTCTimeZone();
  const absl::Time now_ = absl::FromCivil(absl::CivilSecond(2026, 11, 25, 15, 0, 0), zone_);
};

TEST_F(LogsArgsTest, AllOfTheLastRoundByDefault) {
  const auto args = Parse({"job"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->request, rendezvous::LogRequest{.run_id = "job"});
  EXPECT_FALSE(args->one_rank);
}

TEST_F(LogsArgsTest, EachFlagHasItsPart) {
  const auto args = Parse(
      {"-f", "--rank", "0-3,7", "--since=10m", "--tail=5", "--stderr", "--round", "2", "job"});
  ASSERT_TRUE(args.ok()) << args.status();
  const rendezvous::LogRequest& request = args->request;
  EXPECT_THAT(request.ranks, ElementsAre(RankRange{0, 3}, RankRange{7, 7}));
  EXPECT_TRUE(request.extent.follow);
  EXPECT_EQ(request.extent.since, std::chrono::minutes(10));
  EXPECT_EQ(request.extent.tail, 5);
  EXPECT_FALSE(request.extent.with_stdout);
  EXPECT_TRUE(request.extent.with_stderr);
  EXPECT_EQ(request.round, 2);
  EXPECT_TRUE(Parse({"job", "--rank=4"})->one_rank);
  EXPECT_TRUE(Parse({"job", "--previous"})->request.previous);
  EXPECT_TRUE(Parse({"--help"})->help);
}

TEST_F(LogsArgsTest, TimesAreReadAsPeopleWriteThem) {
  EXPECT_EQ(Since("90"), "1m30s");
  EXPECT_EQ(Since("1h30m"), "1h30m");
  EXPECT_EQ(Since("10m"), "10m");
  EXPECT_EQ(Since("2d"), "48h");
  EXPECT_EQ(Since("14:30"), "30m");
  EXPECT_EQ(Since("14:59:30"), "30s");
  EXPECT_EQ(Since("16:00"), "23h") << "it was so late yesterday";
  EXPECT_EQ(Since("2026-11-25T14:00:00"), "1h");
  EXPECT_EQ(Since("2026-11-25T14:00:00+01:00"), "2h");
  EXPECT_EQ(Since("2026-11-24"), "39h");
  EXPECT_EQ(Since("2026-11-26"), "is in the future");
  EXPECT_THAT(Since("soon"), HasSubstr("is neither a time that has passed, such as 90"));
}

TEST_F(LogsArgsTest, MistakesAreNamed) {
  EXPECT_EQ(
      Mistake({}),
      "no job is named; `muster status` lists those that are there; see `muster logs --help`");
  EXPECT_EQ(Mistake({"a", "b"}), "unexpected argument 'b'; see `muster logs --help`");
  EXPECT_THAT(Mistake({"a", "--rank=3-1"}), HasSubstr("--rank=3-1 is not a list of ranks"));
  EXPECT_THAT(Mistake({"a", "--rank=x"}), HasSubstr("--rank=x is not a list of ranks"));
  EXPECT_THAT(Mistake({"a", "--tail=-1"}), HasSubstr("--tail=-1 is not a number of lines"));
  EXPECT_THAT(Mistake({"a", "--round=1", "--previous"}), HasSubstr("contradict each other"));
  EXPECT_THAT(Mistake({"a", "--json"}), HasSubstr("unknown flag '--json'"));
  EXPECT_THAT(Mistake({"a/b"}), HasSubstr("run id"));
}

}  // namespace
}  // namespace muster::launcher
