// Dead workers that cannot be reaped yet: what their group does meanwhile.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

// So long that a test that waits for it fails by its deadline.
constexpr std::chrono::milliseconds kForever = std::chrono::hours(1);
constexpr std::chrono::milliseconds kBriefly(50);

// A dead process that cannot be reaped, like one that hangs in the kernel: an attached debugger
// holds it.
class HeldWorkerTest : public ReadGroupTest {
 protected:
  ~HeldWorkerTest() override { EndDebugger(); }

  // False if the system does not permit it.
  bool AttachDebugger(pid_t worker) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    const base::UniqueFd read_end(ends[0]);
    const base::UniqueFd write_end(ends[1]);
    debugger_ = ::fork();
    if (debugger_ == 0) {
      const char attached = ::ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) == 0 ? 'y' : 'n';
      [[maybe_unused]] const ssize_t written = ::write(write_end.get(), &attached, 1);
      for (;;) ::pause();
    }
    char attached = 'n';
    return ::read(read_end.get(), &attached, 1) == 1 && attached == 'y';
  }

  void EndDebugger() {
    if (debugger_ <= 0) return;
    ::kill(debugger_, SIGKILL);
    ::waitpid(debugger_, nullptr, 0);
    debugger_ = 0;
  }

  pid_t debugger_ = 0;
};

TEST_F(HeldWorkerTest, WorkerThatCannotBeEndedIsGivenUp) {
  Start({Sleeper(0), Sleeper(1)});
  const pid_t held = group_->pids()[0];
  if (!AttachDebugger(held)) GTEST_SKIP() << "ptrace is not allowed here";
  const std::string debugger = std::to_string(debugger_);
  group_->Stop({.first_signal = SIGKILL, .give_up = kBriefly});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_FALSE(results_[0].exits[0].status.has_value());
  EXPECT_EQ(results_[0].exits[1].status->signal, SIGKILL);
  EXPECT_EQ(warnings_, std::vector<std::string>{
                           "rank 0: process " + std::to_string(held) +
                           " did not end 50 ms after SIGKILL and is left behind; it is in "
                           "state Z (dead, not waited for), traced by process " +
                           debugger});
  group_.reset();
  EndDebugger();
  ::waitpid(held, nullptr, 0);
}

TEST_F(HeldWorkerTest, WorkerIsGoneWhenTheDebuggerLetsGo) {
  Start({Sleeper(0), Sleeper(1)});
  const pid_t held = group_->pids()[0];
  if (!AttachDebugger(held)) GTEST_SKIP() << "ptrace is not allowed here";
  group_->Stop({.first_signal = SIGKILL, .give_up = kForever});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 1 && !IsAlive(held); }));
  io_.poll();
  EXPECT_TRUE(results_.empty()) << "its exit status is not ours yet";
  EndDebugger();
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
}

// "Muster killed rank 0, which hung, and named rank 1, which had only lost its connection to it."
TEST_F(HeldWorkerTest, WhoIsKilledForAReasonHasFailedBeforeThoseWhoFollow) {
  Start({Sleeper(0),
         Sh(1, "while ! test -e " + dir_.Path("lost") + "; do sleep 0.01; done; exit 7"),
         Sleeper(2)});
  const std::vector<pid_t> pids = group_->pids();
  if (!AttachDebugger(pids[0])) GTEST_SKIP() << "ptrace is not allowed here";
  EXPECT_TRUE(group_->KillFor(pids[0], SIGKILL, "it hung"));
  EXPECT_TRUE(failures_.empty()) << "callbacks come from the loop only";
  dir_.Write("lost", "");
  ASSERT_TRUE(test::WaitUntil([&] { return !IsAlive(pids[1]); }));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 1; }));
  EndDebugger();
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].rank, 0);
  EXPECT_EQ(failures_[0].what, "was killed by muster (SIGKILL), as it hung");
  EXPECT_EQ(failures_[0].status.signal, SIGKILL);
  EXPECT_EQ(results_[0].failure, failures_[0]);
  ASSERT_EQ(results_[0].other_failures.size(), 1u);
  EXPECT_EQ(results_[0].other_failures[0].rank, 1);
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGKILL);
  EXPECT_FALSE(results_[0].exits[0].stopped_by_group) << "it was not told to stop";
}

}  // namespace
}  // namespace muster::worker
