// A daemon's log, when its stderr accepts everything and when it accepts nothing.
#include "rendezvous/daemon_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "test/support/command.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::rendezvous {
namespace {

using test::Command;
using test::TempDir;
using test::WaitUntil;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

// A stderr of the smallest size, and who reads it.
class DaemonLogTest : public testing::Test {
 protected:
  DaemonLogTest() {
    std::signal(SIGPIPE, SIG_IGN);
    if (::pipe2(pipe_, O_CLOEXEC) != 0) std::abort();
    ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
    ::fcntl(pipe_[1], F_SETPIPE_SZ, 4096);
  }
  ~DaemonLogTest() override {
    ::close(pipe_[0]);
    if (pipe_[1] >= 0) ::close(pipe_[1]);
  }

  // Takes what there is.
  void Read() {
    char buffer[4096];
    for (ssize_t count; (count = ::read(pipe_[0], buffer, sizeof buffer)) > 0;) {
      text_.append(buffer, static_cast<std::size_t>(count));
    }
  }

  int pipe_[2];
  std::string text_;
};

// The lines of a text: those that are there, and those that it says are missing.
struct Lines {
  int present = 0;
  int missing = 0;
};

Lines Count(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("musterd: ")) {
      lines.missing += std::stoi(line.substr(9));
    } else {
      ++lines.present;
    }
  }
  return lines;
}

// musterd's lines had another form than those of muster, which stand beside them.
TEST_F(DaemonLogTest, LinesComeOutInOrderUnderTheDaemonsName) {
  {
    DaemonLog log("musterd", pipe_[1]);
    spdlog::info("first");
    log.Write("musterd: second\n");
  }
  Read();
  EXPECT_THAT(text_, MatchesRegex("I[0-9]{4} [0-9:.]{12} " + std::to_string(::getpid()) +
                                  " musterd\\] first\nmusterd: second\n"));
}

TEST_F(DaemonLogTest, StreamIsNotMadeNonBlockingForOthers) {
  DaemonLog log("musterd", pipe_[1]);
  spdlog::info("line");
  ASSERT_TRUE(WaitUntil([this] { return (Read(), !text_.empty()); }));
  EXPECT_EQ(::fcntl(pipe_[1], F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(DaemonLogTest, LinesThatAStoppedReaderCostAreCounted) {
  constexpr int kCount = 50'000;
  DaemonLog log("musterd", pipe_[1]);
  for (int i = 0; i < kCount; ++i) spdlog::info("a line of the usual length, number {}", i);
  EXPECT_TRUE(WaitUntil([this] {
    Read();
    const Lines lines = Count(text_);
    return lines.present + lines.missing == kCount && text_.ends_with('\n');
  })) << "it must be told without another line that comes along";
  EXPECT_GT(Count(text_).missing, 0);
  spdlog::info("and on");
  EXPECT_TRUE(WaitUntil([this] { return (Read(), text_.ends_with("and on\n")); }));
}

TEST_F(DaemonLogTest, EndWaitsForAStreamThatTakesItAndNotForEverForOneThatDoesNot) {
  // Left to the process, as the thread is that still waits there at the end.
  std::optional<DaemonLog> log(std::in_place, "musterd", ::fcntl(pipe_[1], F_DUPFD_CLOEXEC, 0));
  for (int i = 0; i < 1000; ++i) spdlog::info("a line of the usual length, number {}", i);
  log.reset();
  spdlog::info("after the end");
  Read();
  EXPECT_GT(Count(text_).present, 0);
  EXPECT_THAT(text_, Not(HasSubstr("after")));
}

TEST_F(DaemonLogTest, LongLineIsCutAndStaysALine) {
  {
    DaemonLog log("musterd", pipe_[1]);
    log.Write(std::string(5000, 'x') + "\n");
  }
  Read();
  EXPECT_EQ(text_.size(), 4096u);
  EXPECT_THAT(text_, EndsWith("xxx...\n"));
}

TEST_F(DaemonLogTest, LinesForWhichADiskHadNoRoomAreCounted) {
  const int stream = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(stream, 0);
  DaemonLog log("musterd", stream);
  log.Write("lost\n");
  ASSERT_TRUE(WaitUntil([&] { return log.missing() == 1; }));
  ASSERT_EQ(::dup2(pipe_[1], stream), stream);
  log.Write("there\n");
  EXPECT_TRUE(WaitUntil([this] {
    Read();
    return text_.find("there\n") != std::string::npos && Count(text_).missing == 1;
  }));
  EXPECT_EQ(log.missing(), 0u);
  log.End();
  ::close(stream);
}

// "Our log collector stood still, and a few seconds later every job was fenced": the daemon waited
// in write().
TEST(DaemonLogOfMusterdTest, StderrThatNobodyReadsStopsNeitherItsWorkNorItsEnd) {
  const TempDir dir;
  const std::string fifo = dir.Path("stderr");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const std::string filling(4096, '\n');
  while (::write(reader, filling.data(), filling.size()) > 0) {
  }
  const std::string start = "exec \"$0\" --listen=127.0.0.1:0 --ready-fd=1 --insecure 2>" + fifo;
  Command stuck({"sh", "-c", start, std::filesystem::absolute("rendezvous/musterd")});
  EXPECT_TRUE(stuck.WaitForOut("\n")) << "it is still writing its first line";
  stuck.Signal(SIGTERM);
  EXPECT_EQ(stuck.Wait(), 0);

  // One that is read again at last.
  Command later({"sh", "-c", start, std::filesystem::absolute("rendezvous/musterd")});
  ASSERT_TRUE(later.WaitForOut("\n"));
  std::string text;
  EXPECT_TRUE(WaitUntil([&] {
    char buffer[4096];
    const ssize_t count = ::read(reader, buffer, sizeof buffer);
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    return text.find("listening on") != std::string::npos;
  }));
  ::close(reader);
}

}  // namespace
}  // namespace muster::rendezvous
