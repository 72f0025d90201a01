// A machine that cannot create more processes: a control group at its limit, as under `ulimit -u`
// and in containers.
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "test/worker/group_fixture.h"
#include "worker/process/process_info.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

const char kAdvice[] =
    "fork: Resource temporarily unavailable (no more processes are allowed: raise `ulimit -u` or "
    "the control group's pids.max)";

// Moves this test's process into a group of its own while a test runs.
class ForkFailureTest : public ReadGroupTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer's own thread counts among the processes that are allowed here";
#endif
    own_ = FindOwnCgroup("pids");
    if (own_.has_value()) group_path_ = own_->directory + "/muster_" + std::to_string(::getpid());
    if (!own_.has_value() || ::mkdir(group_path_.c_str(), 0755) != 0) {
      GTEST_SKIP() << "no control group that counts processes can be made here";
    }
    made_ = true;
    Set(group_path_ + "/cgroup.procs", std::to_string(::getpid()));
  }
  void TearDown() override {
    if (made_) Allow("max");
    GroupTest::TearDown();
    if (!made_) return;
    Set(own_->directory + "/cgroup.procs", std::to_string(::getpid()));
    EXPECT_TRUE(test::RunUntil(io_, [this] { return ::rmdir(group_path_.c_str()) == 0; }));
  }

  static void Set(const std::string& file, const std::string& value) {
    std::ofstream(file) << value << std::flush;
  }
  void Allow(const std::string& processes) {
    Set(group_path_ + "/pids.max", processes);
  }
  // Allows this many more processes than there are now.
  void AllowMore(int count) {
    const int now = std::atoi(ReadAll(group_path_ + "/pids.current").c_str());
    Allow(std::to_string(now + count));
  }

  void StartTold(std::vector<WorkerSpec> specs) {
    WorkerGroupCallbacks callbacks;
    callbacks.on_started = [this] { ++started_; };
    callbacks.on_first_failure = [this](const FailureRecord& record) {
      failures_.push_back(record);
    };
    callbacks.on_done = [this](const GroupResult& result) { results_.push_back(result); };
    group_ = std::make_unique<WorkerGroup>(io_, WorkerGroupOptions{.use_cgroup = false}, console_,
                                           std::move(callbacks));
    group_->Start(std::move(specs));
  }

  std::optional<CgroupPath> own_;
  std::string group_path_;
  bool made_ = false;
  int started_ = 0;
};

TEST_F(ForkFailureTest, SaysWhatToDo) {
  AllowMore(0);
  SpawnRequest request;
  request.argv = {"true"};
  const auto spawned = Spawn(request);
  ASSERT_FALSE(spawned.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(spawned.status()));
  EXPECT_EQ(spawned.status().message(), kAdvice);
}

TEST_F(ForkFailureTest, WorkersAreStartedWhenThereIsRoomAgain) {
  AllowMore(2);  // for the guard and one worker
  StartTold({Sleeper(0), Sleeper(1), Sleeper(2)});
  EXPECT_EQ(group_->running(), 1);
  io_.poll();
  EXPECT_EQ(started_, 0) << "two are still missing";
  Allow("max");
  ASSERT_TRUE(test::RunUntil(io_, [this] { return started_ == 1; }));
  EXPECT_EQ(group_->running(), 3);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(ForkFailureTest, IsAFailureWhenItLasts) {
  AllowMore(2);
  StartTold({Sleeper(0), Sleeper(1)});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kFailed);
  EXPECT_EQ(results_[0].failure->rank, 1);
  EXPECT_EQ(results_[0].failure->what, std::string("could not be started: ") + kAdvice);
  EXPECT_EQ(started_, 0);
}

TEST_F(ForkFailureTest, AGroupCanBeStoppedBeforeItsFirstWorkerRuns) {
  AllowMore(0);
  StartTold({Sleeper(0)});
  EXPECT_EQ(group_->running(), 0);
  group_->Stop({});
  EXPECT_TRUE(results_.empty()) << "callbacks come from the loop only";
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kStopped);
  EXPECT_TRUE(results_[0].exits.empty());
}

TEST_F(ForkFailureTest, AWorkerThatFailsMeanwhileEndsTheWait) {
  AllowMore(2);
  StartTold({Sh(0, "read line; exit 3"), Sleeper(1)});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].failure->rank, 0);
  EXPECT_EQ(results_[0].failure->what, "exited with code 3");
  EXPECT_EQ(results_[0].exits.size(), 1u);
  Allow("max");
  io_.poll();
  EXPECT_EQ(started_, 0);
}

}  // namespace
}  // namespace muster::worker
