#include "worker/process/process_info.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "test/support/wait_until.h"

namespace muster::worker {
namespace {

// A child that does nothing until it is killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

TEST(ProcessInfoTest, OneOfOurOwn) {
  const Child child;
  const auto info = ReadProcess(child.pid());
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->parent, ::getpid());
  EXPECT_EQ(info->group, ::getpgrp());
  EXPECT_EQ(info->session, ::getsid(0));
  EXPECT_FALSE(info->zombie);
  EXPECT_GT(info->start_time, 0u);
  EXPECT_EQ(Describe(*info), info->name + " (pid " + std::to_string(child.pid()) + ")");
}

TEST(ProcessInfoTest, OwnChildrenAreThoseOfThreadsThatHaveEndedToo) {
  const Child child;
  std::optional<Child> of_thread;
  std::thread([&] { of_thread.emplace(); }).join();
  std::set<pid_t> pids;
  for (const ProcessInfo& info : ReadOwnChildren()) pids.insert(info.pid);
  EXPECT_EQ(pids.count(child.pid()), 1u);
  EXPECT_EQ(pids.count(::getppid()), 0u);
  // The kernel killed it with its thread (PR_SET_PDEATHSIG), and it is our zombie.
  EXPECT_EQ(pids.count(of_thread->pid()), 1u);
}

TEST(ProcessInfoTest, NameWithParenthesesAndSpaces) {
  char before[16];
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, "a) R 1 (b");
  const auto info = ReadProcess(::getpid());
  ::prctl(PR_SET_NAME, before);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->name, "a) R 1 (b");
  EXPECT_EQ(info->parent, ::getppid());
}

TEST(ProcessInfoTest, NoSuchProcess) {
  EXPECT_FALSE(ReadProcess(0x7ffffff0).has_value());
}

TEST(ProcessInfoTest, TheDeadAreZombiesUntilTheyAreWaitedFor) {
  const Child child;
  ::kill(child.pid(), SIGKILL);
  EXPECT_TRUE(test::WaitUntil([&] { return ReadProcess(child.pid())->zombie; }));
}

// "The launcher killed another user's process, which had got the pid of a worker of mine."
TEST(ProcessInfoTest, ProcessThatHasGotThePidOfAnotherIsNotSignalled) {
  const Child child;
  auto another = ReadProcess(child.pid());
  ASSERT_TRUE(another.has_value());
  another->start_time -= 1;
  EXPECT_FALSE(SignalProcess(*another, SIGKILL));
  EXPECT_EQ(::waitpid(child.pid(), nullptr, WNOHANG), 0) << "it runs";
  EXPECT_TRUE(SignalProcess(*ReadProcess(child.pid()), SIGKILL));
  EXPECT_TRUE(test::WaitUntil([&] { return ReadProcess(child.pid())->zombie; }));
}

TEST(ProcessInfoTest, WhatAProcessDoesWithSignals) {
  const auto ignored = std::signal(SIGUSR1, SIG_IGN);
  const auto caught = std::signal(SIGUSR2, [](int) {});
  const Child child;
  std::signal(SIGUSR1, ignored);
  std::signal(SIGUSR2, caught);
  EXPECT_EQ(DispositionOf(child.pid(), SIGUSR1), Disposition::kIgnored);
  EXPECT_EQ(DispositionOf(child.pid(), SIGUSR2), Disposition::kCaught);
  EXPECT_EQ(DispositionOf(child.pid(), SIGTERM), Disposition::kDefault);
  EXPECT_EQ(DispositionOf(0x7ffffff0, SIGTERM), std::nullopt);
}

TEST(ProcessInfoTest, DescendantsAreFoundInWhateverOrderTheyAreListed) {
  const std::vector<ProcessInfo> all = {
      {.pid = 5, .parent = 4}, {.pid = 4, .parent = 2},  {.pid = 2, .parent = 1},
      {.pid = 3, .parent = 1}, {.pid = 6, .parent = 99},
  };
  std::vector<pid_t> pids;
  for (const ProcessInfo& info : WithDescendants(all, {2, 6})) pids.push_back(info.pid);
  std::sort(pids.begin(), pids.end());
  EXPECT_EQ(pids, (std::vector<pid_t>{2, 4, 5, 6}));
}

}  // namespace
}  // namespace muster::worker
