// When nodes ask Slurm, and what they make of its answers. Scontrol is a script here; test/slurm
// has the real one.
#include "launcher/run/interruptions.h"

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::RunUntil;

TEST(DrainWatchTest, NodesAskOneAfterAnotherAndOnceASecondTogether) {
  const auto first = DrainWatch::TimesOf(seconds(60), 0, 3);
  EXPECT_EQ(first.interval, seconds(60));
  EXPECT_EQ(first.first, seconds(20));
  EXPECT_EQ(DrainWatch::TimesOf(seconds(60), 1, 3).first, seconds(40));
  EXPECT_EQ(DrainWatch::TimesOf(seconds(60), 2, 3).first, seconds(60));
  const auto of_many = DrainWatch::TimesOf(seconds(60), 9, 1000);
  EXPECT_EQ(of_many.interval, seconds(1000));
  EXPECT_EQ(of_many.first, seconds(10));
  EXPECT_EQ(DrainWatch::TimesOf(milliseconds(100), 7, 2).first, seconds(2)) << "no such rank";
}

class DrainWatchRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PATH", (dir_.path() + ":/usr/bin:/bin").c_str(), 1);
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_));
    logger->set_pattern("%l: %v");
    spdlog::set_default_logger(std::move(logger));
  }

  void TearDown() override {
    spdlog::set_default_logger(before_);
    ::setenv("PATH", path_before_.c_str(), 1);
  }
  // The next questions are answered by this.
  void Answer(const std::string& script) {
    dir_.Write("scontrol", "#!/bin/sh\necho \"$*\" >> " + dir_.Path("asked") + "\n" + script, 0755);
  }
  std::unique_ptr<DrainWatch> Begin(const Environment& environment, int min_nodes = 1) {
    LaunchConfig config;
    config.min_nodes = min_nodes;
    config.max_nodes = 2;
    config.drain_interval = milliseconds(1);
    return DrainWatch::Begin(
        io_, config, environment,
        {.on_drained = [this](const std::string& why) { told_.push_back(why); },
         .on_command = [this](pid_t pid) { children_.push_back(pid); }});
  }
  Environment InSlurm() const {
    return {{"SLURM_JOB_ID", "7"},
            {"SLURMD_NODENAME", "n2"},
            {"SLURM_NODEID", "0"},
            {"PATH", dir_.path() + ":/usr/bin:/bin"}};
  }

  test::TempDir dir_;
  boost::asio::io_context io_;
  std::vector<std::string> told_;
  std::vector<pid_t> children_;
  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  const std::string path_before_ = std::getenv("PATH");
};

// Three nodes that Slurm had suspended together asked in the same instant for ever after.
TEST(DrainWatchTest, NodesThatStoodStillKeepTheirTimes) {
  const std::chrono::steady_clock::time_point due{std::chrono::hours(1)};
  const auto next = [&](milliseconds later) {
    return DrainWatch::NextTime(due, seconds(60), due + later) - due;
  };
  EXPECT_EQ(next(milliseconds(20)), seconds(60));
  EXPECT_EQ(next(seconds(59)), seconds(60));
  EXPECT_EQ(next(seconds(60)), seconds(120));
  EXPECT_EQ(next(seconds(185)), seconds(240));
}

TEST_F(DrainWatchRunTest, NodeAsksForItselfUntilItIsDrainedAndOn) {
  // Nobody is there, then it is not drained, then it is.
  Answer("case $(wc -l < " + dir_.Path("asked") +
         ") in\n1) exit 1;;\n2) echo '   State=MIXED';;\n"
         "*) printf '   State=MIXED+DRAIN X=1\\n   Reason=bad fan [root@now]\\n';;\nesac\n");
  const auto watch = Begin(InSlurm());
  ASSERT_NE(watch, nullptr);
  ASSERT_TRUE(RunUntil(io_, [this] { return told_.size() == 2; }));
  EXPECT_THAT(told_, testing::Each("Slurm drains it (bad fan)"));
  EXPECT_EQ(children_.size(), 4u) << "who watches over workers is told of each";
  EXPECT_EQ(test::ReadAll(dir_.Path("asked")).substr(0, 13), "show node n2\n");
}

TEST_F(DrainWatchRunTest, WithoutScontrolNothingIsAskedAgain) {
  ::setenv("PATH", dir_.path().c_str(), 1);
  for (const int min_nodes : {1, 2}) {
    log_.str("");
    const auto watch = Begin(InSlurm(), min_nodes);
    ASSERT_NE(watch, nullptr);
    // The loop has nothing more to do.
    io_.restart();
    io_.run();
    EXPECT_TRUE(children_.empty());
    // Only a job of MIN:MAX would have left the node.
    EXPECT_THAT(log_.str(),
                testing::StartsWith(min_nodes == 1 ? "warning: whether" : "info: whether"));
    EXPECT_THAT(log_.str(), testing::HasSubstr("scontrol: not found in PATH"));
  }
}

// A node asked never again after its file system had been away for a moment.
TEST_F(DrainWatchRunTest, QuestionThatCouldNotBeAskedIsAskedAgain) {
  dir_.Write("scontrol", "#!/bin/sh\n", 0644);
  const auto watch = Begin(InSlurm());
  ASSERT_NE(watch, nullptr);
  ASSERT_TRUE(RunUntil(io_, [this] { return !log_.str().empty(); }));
  EXPECT_THAT(log_.str(), testing::StartsWith("info: Slurm does not say whether it drains this "
                                              "node: "));
  EXPECT_THAT(log_.str(), testing::HasSubstr("; it is asked again in "));
  Answer("printf '   State=MIXED+DRAIN X=1\\n   Reason=bad fan [root@now]\\n'\n");
  ASSERT_TRUE(RunUntil(io_, [this] { return !told_.empty(); }));
}

TEST_F(DrainWatchRunTest, OutsideOfSlurmsJobsNobodyIsAsked) {
  EXPECT_EQ(Begin({}), nullptr);
  EXPECT_EQ(Begin({{"SLURM_JOB_ID", "7"}}), nullptr);
  Environment off = InSlurm();
  off["MUSTER_SLURM"] = "0";
  EXPECT_EQ(Begin(off), nullptr);
  LaunchConfig one_node;
  EXPECT_EQ(DrainWatch::Begin(io_, one_node, InSlurm(), {}), nullptr);
  LaunchConfig never;
  never.max_nodes = 2;
  never.drain_interval = milliseconds(0);
  EXPECT_EQ(DrainWatch::Begin(io_, never, InSlurm(), {}), nullptr);
}

}  // namespace
}  // namespace muster::launcher
