// Reports on the out-of-memory killer: from made-up files of both cgroup versions, and from a real
// memory cgroup if the machine permits one.
#include "worker/tree/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

class OomTest : public testing::Test {
 protected:
  CgroupPath Group(const std::string& name) {
    ::mkdir(dir_.Path(name).c_str(), 0755);
    return {dir_.Path(name), dir_.path().size()};
  }

  TempDir dir_;
};

TEST_F(OomTest, UnifiedGroup) {
  const CgroupPath group = Group("job");
  dir_.Write("job/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n");
  dir_.Write("job/memory.max", "536870912\n");
  OomWatch oom(group, std::nullopt);
  EXPECT_FALSE(oom.ExplainsOneMore()) << "what was before is not ours";
  dir_.Write("job/memory.events", "oom 2\noom_kill 3\n");
  EXPECT_TRUE(oom.ExplainsOneMore());
  EXPECT_TRUE(oom.ExplainsOneMore());
  EXPECT_FALSE(oom.ExplainsOneMore()) << "each kill explains one death";
  EXPECT_EQ(oom.Describe(),
            "by the kernel's out-of-memory killer (memory limit 512 MiB of cgroup /job)");
}

TEST_F(OomTest, LimitOfAGroupAbove) {
  Group("slice");
  const CgroupPath group = Group("slice/job");
  dir_.Write("slice/memory.max", "2147483648\n");
  dir_.Write("slice/job/memory.max", "max\n");
  dir_.Write("slice/job/memory.events", "oom_kill 0\n");
  EXPECT_EQ(OomWatch(group, std::nullopt).Describe(),
            "by the kernel's out-of-memory killer (memory limit 2 GiB of cgroup /slice)");
}

TEST_F(OomTest, ControllerThatIsOnlyEnabledAboveUs) {
  Group("slice");
  const CgroupPath group = Group("slice/job");
  dir_.Write("slice/memory.events", "oom_kill 0\n");
  OomWatch oom(group, std::nullopt);
  dir_.Write("slice/memory.events", "oom_kill 1\n");
  EXPECT_TRUE(oom.ExplainsOneMore());
}

TEST_F(OomTest, GroupOfVersionOne) {
  const CgroupPath group = Group("job");
  dir_.Write("job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  dir_.Write("job/memory.limit_in_bytes", "9223372036854771712\n");
  OomWatch oom(Group("unified"), group);
  dir_.Write("job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_TRUE(oom.ExplainsOneMore());
  EXPECT_EQ(oom.Describe(), "by the kernel's out-of-memory killer (the node's memory was used up)");
}

TEST_F(OomTest, WithoutAGroupNothingIsExplained) {
  OomWatch nothing(std::nullopt, std::nullopt);
  EXPECT_FALSE(nothing.ExplainsOneMore());
  OomWatch empty(Group("unified"), Group("memory"));
  EXPECT_FALSE(empty.ExplainsOneMore());
}

// A memory group (v1) for this test process, and so for its workers: 256 MiB, more than the test
// itself needs.
class OomGroupTest : public ReadGroupTest {
 protected:
  OomGroupTest() : own_(FindOwnCgroup("memory")) {
    if (!own_.has_value()) return;
    limited_ = own_->directory + "/muster-oom-test-" + std::to_string(::getpid());
    if (::mkdir(limited_.c_str(), 0755) != 0) return;
    ready_ = Write(limited_ + "/memory.limit_in_bytes", std::to_string(256 << 20)) &&
             Write(limited_ + "/cgroup.procs", std::to_string(::getpid()));
  }
  ~OomGroupTest() override {
    group_.reset();
    if (!own_.has_value()) return;
    Write(own_->directory + "/cgroup.procs", std::to_string(::getpid()));
    ::rmdir(limited_.c_str());
  }

  static bool Write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    return static_cast<bool>(file << text << std::flush);
  }

  static constexpr char kEat[] = "x = bytearray(1 << 30)";

  const std::optional<CgroupPath> own_;
  std::string limited_;
  bool ready_ = false;
};

// "My rank was 'killed by signal 9', and I searched for a day for the process that had killed it."
TEST_F(OomGroupTest, WorkerThatEatsTooMuchIsToldApart) {
  if (!ready_) GTEST_SKIP() << "no memory cgroup (v1) of our own here";
  WorkerSpec hungry = Sh(1, "");
  hungry.argv = {"python3", "-c", kEat};
  ASSERT_TRUE(RunToEnd({Sleeper(0), hungry}));
  const FailureRecord& failure = failures_.at(0);
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.status.signal, SIGKILL);
  EXPECT_EQ(failure.what,
            "was killed by SIGKILL, by the kernel's out-of-memory killer (memory limit 256 MiB of "
            "cgroup " +
                limited_.substr(own_->mount_size) + ")");
}

TEST_F(OomGroupTest, SoIsAShellWhosePythonEatsTooMuch) {
  if (!ready_) GTEST_SKIP() << "no memory cgroup (v1) of our own here";
  Start({Sh(0, std::string("python3 -c '") + kEat + "'; exit $?")});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(failures_.at(0).status.exit_code, 137);
  EXPECT_TRUE(
      failures_[0].what.starts_with("exited with code 137 after one of its processes was killed "
                                    "by the kernel's out-of-memory killer"))
      << failures_[0].what;
}

TEST_F(OomGroupTest, WorkerThatSomebodyElseKillsIsNot) {
  Start({Sleeper(0)});
  ::kill(group_->pids()[0], SIGKILL);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(failures_.at(0).what, "was killed by SIGKILL");
}

}  // namespace
}  // namespace muster::worker
