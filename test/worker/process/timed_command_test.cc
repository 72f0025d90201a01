// Real programs that print, fail, print too much, or do not exit.
#include "worker/process/process.h"

#include <csignal>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::worker {
namespace {

constexpr std::chrono::hours kNever(1);

class TimedCommandTest : public testing::Test {
 protected:
  void TearDown() override {
    command_.reset();
    EXPECT_TRUE(test::WaitForProcesses(mark_, 0));
  }

  void Start(TimedCommandOptions options) {
    options.env = {"PATH=/usr/local/bin:/usr/bin:/bin", mark_};
    auto command = TimedCommand::Start(io_, std::move(options), [this](TimedCommandResult result) {
      results_.push_back(std::move(result));
      command_.reset();
    });
    ASSERT_TRUE(command.ok()) << command.status();
    command_ = *std::move(command);
  }
  void Sh(const std::string& script, std::chrono::milliseconds limit = kNever,
          std::size_t output_limit = 1024) {
    Start({.argv = {"sh", "-c", script}, .limit = limit, .output_limit = output_limit});
  }
  bool RunUntilDone() {
    return test::RunUntil(io_, [this] { return !results_.empty(); });
  }

  const std::string mark_ = test::UniqueMark();
  boost::asio::io_context io_;
  std::vector<TimedCommandResult> results_;
  std::unique_ptr<TimedCommand> command_;
};

TEST_F(TimedCommandTest, TellsWhatItPrintedAndHowItEnded) {
  Sh("echo out; echo err >&2; cat; exit 3");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].output, "out\nerr\n");
  EXPECT_EQ(results_[0].status, (ExitStatus{.exit_code = 3}));
  EXPECT_FALSE(results_[0].timed_out);
  EXPECT_FALSE(results_[0].output_cut);
}

TEST_F(TimedCommandTest, OneThatHangsIsKilledWithItsChildren) {
  Sh("echo begun; sleep 10000 & sleep 10000", std::chrono::milliseconds(200));
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(results_[0].timed_out);
  EXPECT_EQ(results_[0].status, (ExitStatus{.signal = SIGKILL}));
}

TEST_F(TimedCommandTest, MoreOutputThanIsWantedIsReadAndThrownAway) {
  Sh("head -c 10000000 /dev/zero; echo", kNever, 1000);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].output, std::string(1000, '\0'));
  EXPECT_TRUE(results_[0].output_cut);
  EXPECT_TRUE(results_[0].status->Succeeded());
}

TEST_F(TimedCommandTest, AChildThatKeepsTheOutputOpenIsNotWaitedFor) {
  test::TempDir dir;
  Sh("sleep 10000 & echo $! >" + dir.Path("pid") + "; echo done");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].output, "done\n");
  ::kill(std::atoi(test::ReadAll(dir.Path("pid")).c_str()), SIGKILL);
}

TEST_F(TimedCommandTest, OneThatClosesItsOutputIsWaitedFor) {
  Sh("exec >&- 2>&-; exec sh -c 'exit 4'");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].status, (ExitStatus{.exit_code = 4}));
}

TEST_F(TimedCommandTest, OneThatIsNotThereIsAnError) {
  const auto command = TimedCommand::Start(io_, {.argv = {"no-such-program"}},
                                           [](TimedCommandResult) { ADD_FAILURE(); });
  ASSERT_FALSE(command.ok());
  EXPECT_TRUE(absl::StrContains(command.status().message(), "no-such-program"));
  io_.run();
}

TEST_F(TimedCommandTest, GoesWithItsObject) {
  Start({.argv = {"sleep", "10000"}, .limit = kNever});
  EXPECT_TRUE(test::WaitForProcesses(mark_, 1));
  command_.reset();
  EXPECT_TRUE(test::WaitForProcesses(mark_, 0));
  io_.run();
  EXPECT_TRUE(results_.empty());
}

}  // namespace
}  // namespace muster::worker
