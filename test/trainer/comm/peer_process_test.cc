#include "trainer/comm/host/shm_barrier.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "test/trainer/forked_members.h"

namespace muster::trainer {
namespace {

TEST(PeerProcessTest, SeesStoppedContinuedAndEndedProcesses) {
  ForkedMembers members(1, [](int, const ForkedMembers::Say& say) {
    say("here");
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(members.WaitFor(0, "here"));
  ProcessIdentity child{.pid = members.pid(0)};
  EXPECT_EQ(LookAt(child), ProcessState::kRunning);

  members.Signal(0, SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WSTOPPED | WNOWAIT), 0);
  EXPECT_EQ(LookAt(child), ProcessState::kStopped);

  members.Signal(0, SIGCONT);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WCONTINUED | WNOWAIT), 0);
  EXPECT_EQ(LookAt(child), ProcessState::kRunning);

  members.Signal(0, SIGKILL);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(LookAt(child), ProcessState::kGone) << "a zombie";
  EXPECT_EQ(members.Wait(0), -SIGKILL);
  EXPECT_EQ(LookAt(child), ProcessState::kGone) << "waited for";
}

TEST(PeerProcessTest, ALaterProcessWithTheSamePidIsNotTheSame) {
  ProcessIdentity me = ThisProcess();
  EXPECT_EQ(me.pid, getpid());
  EXPECT_EQ(LookAt(me), ProcessState::kRunning);
  --me.start_time;
  EXPECT_EQ(LookAt(me), ProcessState::kGone);
}

}  // namespace
}  // namespace muster::trainer
