// Workers that announce deadlines through the watchdog's FIFO, as PyTorch's client does, and what
// else may arrive there.
#include "worker/hang/file_watchdog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

using Clock = std::chrono::system_clock;

class FileWatchdogTest : public ReadGroupTest {
 protected:
  using Expired = std::tuple<pid_t, std::string, int>;

  void Open() {
    auto watchdog = FileWatchdog::Open(
        io_, path_,
        {.on_expired =
             [this](pid_t pid, const std::string& scope, int signal) {
               expired_.emplace_back(pid, scope, signal);
               if (group_ == nullptr) return;
               was_ours_ =
                   group_->KillFor(pid, signal, "its watchdog timer '" + scope + "' expired");
             },
         .on_warning = [this](const std::string& text) { warnings_.push_back(text); }});
    ASSERT_TRUE(watchdog.ok()) << watchdog.status();
    watchdog_ = *std::move(watchdog);
  }

  // Opens it as the client does: without waiting for a reader.
  void Send(const std::string& lines) {
    const base::UniqueFd fifo(::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_EQ(::write(fifo.get(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  }

  static std::string Request(pid_t pid, const std::string& scope, Clock::duration from_now,
                             int signal = SIGKILL) {
    const double when =
        std::chrono::duration<double>((Clock::now() + from_now).time_since_epoch()).count();
    return "{\"version\": 1, \"pid\": " + std::to_string(pid) + ", \"scope_id\": \"" + scope +
           "\", \"expiration_time\": " + std::to_string(when) +
           ", \"signal\": " + std::to_string(signal) + "}\n";
  }
  static std::string Release(pid_t pid, const std::string& scope) {
    return "{\"version\": 1, \"pid\": " + std::to_string(pid) + ", \"scope_id\": \"" + scope +
           "\", \"expiration_time\": -1, \"signal\": 0}\n";
  }

  bool RunUntilTimers(std::size_t count) {
    return test::RunUntil(io_, [&] { return watchdog_->running_timers() == count; });
  }
  bool RunUntilExpired(std::size_t count) {
    return test::RunUntil(io_, [&] { return expired_.size() == count; });
  }

  const std::string path_ = dir_.Path("watchdog");
  std::unique_ptr<FileWatchdog> watchdog_;
  std::vector<Expired> expired_;
  bool was_ours_ = false;
};

constexpr std::chrono::hours kNever(1);
constexpr std::chrono::seconds kPast(-1);

TEST_F(FileWatchdogTest, ATimerThatIsReleasedInTimeDoesNothing) {
  Open();
  Send(Request(17, "step", kNever));
  ASSERT_TRUE(RunUntilTimers(1));
  Send(Release(17, "step"));
  ASSERT_TRUE(RunUntilTimers(0));
  EXPECT_TRUE(expired_.empty());
}

TEST_F(FileWatchdogTest, ATimerThatRunsOutIsToldOnce) {
  Open();
  Send(Request(17, "step", std::chrono::milliseconds(20), SIGABRT));
  ASSERT_TRUE(RunUntilExpired(1));
  EXPECT_EQ(expired_[0], Expired(17, "step", SIGABRT));
  EXPECT_EQ(watchdog_->running_timers(), 0u);
}

TEST_F(FileWatchdogTest, ATimerThatIsMovedRunsOutAtItsNewTime) {
  Open();
  Send(Request(17, "step", kNever));
  ASSERT_TRUE(RunUntilTimers(1));
  Send(Request(17, "step", kPast));
  ASSERT_TRUE(RunUntilExpired(1));
  Send(Request(17, "step", kPast) + Request(17, "step", kNever));
  ASSERT_TRUE(RunUntilTimers(1));
  EXPECT_EQ(expired_.size(), 1u) << "the later word counts";
}

TEST_F(FileWatchdogTest, OfSeveralTimersOfOneProcessTheFirstWithASignalIsTold) {
  Open();
  Send(Request(17, "later", kPast, SIGKILL) + Request(17, "first", kPast * 3, SIGABRT) +
       Request(17, "mute", kPast * 5, 0) + Request(17, "running", kNever) +
       Request(18, "other", kNever));
  ASSERT_TRUE(RunUntilExpired(1));
  EXPECT_EQ(expired_[0], Expired(17, "first", SIGABRT));
  EXPECT_EQ(watchdog_->running_timers(), 1u) << "the other process's";
}

TEST_F(FileWatchdogTest, ATimerWithoutASignalEndsQuietly) {
  Open();
  Send(Request(17, "step", kPast, 0) + Request(18, "step", kPast));
  ASSERT_TRUE(RunUntilExpired(1));
  EXPECT_EQ(std::get<0>(expired_[0]), 18);
  EXPECT_EQ(watchdog_->running_timers(), 0u);
}

TEST_F(FileWatchdogTest, ClearedTimersAreOver) {
  Open();
  Send(Request(17, "step", kNever));
  ASSERT_TRUE(RunUntilTimers(1));
  watchdog_->Clear();
  EXPECT_EQ(watchdog_->running_timers(), 0u);
  Send(Request(18, "step", kPast));
  ASSERT_TRUE(RunUntilExpired(1));
}

TEST_F(FileWatchdogTest, LinesInPiecesAndManyAtOnce) {
  Open();
  const std::string request = Request(17, "step", kNever);
  for (const char byte : request) {
    Send(std::string(1, byte));
    io_.poll();
  }
  ASSERT_TRUE(RunUntilTimers(1));
  std::string many;
  for (int pid = 1; pid <= 400; ++pid) many += Request(pid, "step", kNever);
  Send(many);
  EXPECT_TRUE(RunUntilTimers(400)) << watchdog_->running_timers();
}

TEST_F(FileWatchdogTest, GarbageIsCountedAndToldOnce) {
  Open();
  Send("garbage\n{}\n\n" + std::string(10000, 'x') + Request(16, "lost", kNever) +
       Request(17, "step", kNever));
  ASSERT_TRUE(RunUntilTimers(1));
  EXPECT_EQ(watchdog_->malformed_lines(), 3u);
  EXPECT_EQ(
      warnings_,
      std::vector<std::string>{
          "the watchdog's FIFO " + path_ +
          " got a line that is not a timer request; this one and others like it are ignored"});
}

TEST_F(FileWatchdogTest, TheFifoIsTheOwnersAndGoesWithTheWatchdog) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0666), 0);
  struct stat stale;
  ASSERT_EQ(::lstat(path_.c_str(), &stale), 0);
  const base::UniqueFd hold(::open(path_.c_str(), O_RDWR | O_CLOEXEC));  // keeps its inode
  Open();
  struct stat info;
  ASSERT_EQ(::lstat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode, static_cast<mode_t>(S_IFIFO | 0600));
  EXPECT_NE(info.st_ino, stale.st_ino) << "one that was there is not used";
  watchdog_.reset();
  EXPECT_NE(::lstat(path_.c_str(), &info), 0);
}

TEST_F(FileWatchdogTest, WhatIsNoFifoIsLeftAlone) {
  dir_.Write("watchdog", "precious");
  EXPECT_EQ(FileWatchdog::Open(io_, path_, {}).status().message(),
            "make the watchdog's FIFO " + path_ + ": another file exists there already");
  EXPECT_EQ(ReadAll(path_), "precious");
  const std::string link = dir_.Path("link");
  ASSERT_EQ(::symlink("/nowhere", link.c_str()), 0);
  EXPECT_FALSE(FileWatchdog::Open(io_, link, {}).ok());
  EXPECT_EQ(
      FileWatchdog::Open(io_, dir_.Path("no/such/place"), {}).status().message(),
      "make the watchdog's FIFO " + dir_.Path("no/such/place") + ": No such file or directory");
}

// The worker's side of torch.distributed.elastic.timer.
constexpr char kClient[] = R"(
import json, os, sys, time
def send(scope, seconds, signal):
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
    until = time.time() + seconds if seconds > 0 else -1
    os.write(fd, (json.dumps({"version": 1, "pid": os.getpid(), "scope_id": scope,
                              "expiration_time": until, "signal": signal}) + "\n").encode())
    os.close(fd)
send("load", 3600, 9)
send("load", 0, 0)
send("step", 0.05, 9)
time.sleep(10000)
)";

// "One rank hung in a collective, and the watchdog took the launcher with it."
TEST_F(FileWatchdogTest, WorkerThatHangsIsKilledAndTheReportSaysWhy) {
  Open();
  WorkerSpec hanging = Sh(1, "");
  hanging.argv = {"python3", "-c", kClient, path_};
  ASSERT_TRUE(RunToEnd({Sleeper(0), hanging}));
  EXPECT_EQ(failures_.at(0).rank, 1);
  EXPECT_EQ(failures_[0].status.signal, SIGKILL);
  EXPECT_EQ(failures_[0].what,
            "was killed by muster (SIGKILL), as its watchdog timer 'step' expired");
  EXPECT_EQ(watchdog_->running_timers(), 0u);
}

TEST_F(FileWatchdogTest, SoIsOneBelowAShell) {
  Open();
  const std::string client = dir_.Write("client.py", kClient);
  Start({Sh(0, "python3 " + client + " " + path_ + "; exit $?")});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(
      failures_.at(0).what,
      "exited with code 137 after muster had signalled it, as its watchdog timer 'step' expired");
}

TEST_F(FileWatchdogTest, ProcessThatIsNoWorkersIsNotKilled) {
  Open();
  Start({Sleeper(0)});
  // This process: not a worker, but named in a request.
  Send(Request(::getpid(), "step", kPast) + Request(1, "step", kPast));
  ASSERT_TRUE(RunUntilExpired(2));
  EXPECT_FALSE(was_ours_);
  EXPECT_EQ(group_->running(), 1);
}

// "After fg my worker was killed: its timer had gone on while it was stopped."
TEST_F(FileWatchdogTest, TimerOfASuspendedRunHasAsMuchTimeLeftAsItHad) {
  Open();
  watchdog_->Suspend();
  Send(Request(17, "late", -std::chrono::hours(1)));
  EXPECT_FALSE(test::RunUntil(
      io_, [this] { return !expired_.empty(); }, std::chrono::milliseconds(100)));
  EXPECT_EQ(watchdog_->running_timers(), 1u);
  watchdog_->Resume();
  EXPECT_TRUE(test::RunUntil(io_, [this] { return !expired_.empty(); }));
}

}  // namespace
}  // namespace muster::worker
