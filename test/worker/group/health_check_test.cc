// Real commands that pass, fail, hang and vanish.
#include "worker/group/health_check.h"

#include <sys/wait.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"
#include "worker/output/console.h"

namespace muster::worker {
namespace {

using test::IsAlive;
using test::RunUntil;
using test::WaitForProcesses;

class HealthCheckTest : public testing::Test {
 protected:
  void TearDown() override {
    check_.reset();
    EXPECT_TRUE(WaitForProcesses(mark_, 0)) << "a check leaves nothing behind";
    for (const pid_t pid : test::ProcessesWith(mark_)) ::kill(pid, SIGKILL);
  }

  void Start(const std::string& command,
             std::chrono::milliseconds timeout = std::chrono::minutes(10)) {
    check_ = std::make_unique<HealthCheck>(
        io_, HealthCheckOptions{.command = command,
                                .timeout = timeout,
                                .env = {"PATH=/usr/local/bin:/usr/bin:/bin", mark_}});
    check_->Start([this](const absl::Status& status) {
      EXPECT_FALSE(status_.has_value()) << "told twice";
      status_ = status;
    });
    EXPECT_FALSE(status_.has_value()) << "callbacks come from the loop only";
  }

  absl::Status Run(const std::string& command,
                   std::chrono::milliseconds timeout = std::chrono::minutes(10)) {
    Start(command, timeout);
    EXPECT_TRUE(RunUntil(io_, [this] { return status_.has_value(); }));
    return status_.value_or(absl::UnknownError("not told"));
  }

  static absl::Status Unfit(const std::string& sentence) {
    return absl::FailedPreconditionError(sentence);
  }

  const std::string mark_ = test::UniqueMark();
  test::TempDir dir_;
  boost::asio::io_context io_;
  // Ignores SIGPIPE, as the launcher's does.
  Console console_{io_};
  std::unique_ptr<HealthCheck> check_;
  std::optional<absl::Status> status_;
};

TEST_F(HealthCheckTest, NodeIsFitWhenTheCommandExitsWithZero) {
  EXPECT_EQ(Run("echo fine; echo 'all of it' >&2; test -n \"$PATH\""), absl::OkStatus());
  EXPECT_EQ(check_->output(), "fine\nall of it\n");
}

TEST_F(HealthCheckTest, ReasonHasTheExitCodeAndTheLastLine) {
  EXPECT_EQ(Run("echo GPU 0; echo 'No devices were found' >&2; echo; exit 9"),
            Unfit("the health check 'echo GPU 0; echo 'No devices were found' >&2; echo; exit 9' "
                  "exited with code 9: No devices were found"));
}

TEST_F(HealthCheckTest, CommandThatSaysNothing) {
  EXPECT_EQ(Run("exit 3"), Unfit("the health check 'exit 3' exited with code 3"));
}

TEST_F(HealthCheckTest, CommandThatDiesOfASignal) {
  EXPECT_EQ(Run("kill -BUS $$"), Unfit("the health check 'kill -BUS $$' was killed by SIGBUS"));
}

TEST_F(HealthCheckTest, CommandThatIsNotThere) {
  const absl::Status status = Run("no-such-check --now");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::string(status.message())
                  .starts_with("the health check 'no-such-check --now' exited with code 127: "));
  EXPECT_TRUE(std::string(status.message()).ends_with("not found"));
}

TEST_F(HealthCheckTest, ReasonIsOneLineWithoutControlCharacters) {
  EXPECT_EQ(Run("printf 'a\\nchecking\\r\\033[1mbroken\\tlink\\r\\n'; exit 1").message(),
            "the health check 'printf 'a\\nchecking\\r\\033[1mbroken\\tlink\\r\\n'; exit 1' exited "
            "with code 1: broken  link");
}

TEST_F(HealthCheckTest, OfMuchOutputTheEndIsKept) {
  const absl::Status status = Run("seq 1 20000; echo the end; exit 2");
  EXPECT_TRUE(std::string(status.message()).ends_with("exited with code 2: the end"));
  EXPECT_LE(check_->output().size(), 4096u);
  EXPECT_TRUE(check_->output().ends_with("20000\nthe end\n"));
}

// The user saw a node that waited forever for a hanging driver.
TEST_F(HealthCheckTest, CommandThatHangsIsKilledWithItsGroup) {
  EXPECT_EQ(Run("trap '' TERM; sleep 10000 & sleep 10000", std::chrono::milliseconds(500)),
            Unfit("the health check 'trap '' TERM; sleep 10000 & sleep 10000' did not end within "
                  "0.5 s and was killed"));
  EXPECT_TRUE(WaitForProcesses(mark_, 0));
}

TEST_F(HealthCheckTest, WhatItLeavesInTheBackgroundIsNotWaitedForAndDies) {
  EXPECT_EQ(Run("sleep 10000 & echo $! >&2; exit 0"), absl::OkStatus());
  EXPECT_TRUE(WaitForProcesses(mark_, 0));
}

TEST_F(HealthCheckTest, DestroyedCheckTellsNothingAndIsDead) {
  Start("sleep 10000 & sleep 10000");
  ASSERT_TRUE(WaitForProcesses(mark_, 3));
  check_.reset();
  EXPECT_TRUE(WaitForProcesses(mark_, 0));
  io_.restart();
  io_.poll();
  EXPECT_FALSE(status_.has_value());
}

TEST_F(HealthCheckTest, CallbackMayDestroyTheCheck) {
  bool told = false;
  check_ = std::make_unique<HealthCheck>(io_, HealthCheckOptions{.command = "exit 0"});
  check_->Start([&](const absl::Status& status) {
    EXPECT_EQ(status, absl::OkStatus());
    check_.reset();
    told = true;
  });
  EXPECT_TRUE(RunUntil(io_, [&] { return told; }));
}

// "kill -9 of the agent left a dozen nvidia-smi behind."
TEST_F(HealthCheckTest, NothingIsLeftOfACheckWhoseAgentIsKilled) {
  const pid_t agent = ::fork();
  if (agent == 0) {
    boost::asio::io_context io;
    HealthCheck check(io, {.command = "setsid sleep 10000 & sleep 10000 & wait",
                           .env = {"PATH=/usr/local/bin:/usr/bin:/bin", mark_}});
    check.Start([](const absl::Status&) {});
    io.run();
    ::_exit(1);
  }
  ASSERT_TRUE(WaitForProcesses(mark_, 3));
  ::kill(agent, SIGKILL);
  ::waitpid(agent, nullptr, 0);
  EXPECT_TRUE(WaitForProcesses(mark_, 0));
}

}  // namespace
}  // namespace muster::worker
