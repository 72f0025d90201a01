// A console that is slow, stuck or gone must never block the loop.
#include "worker/output/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "test/support/run_until.h"

namespace muster::worker {
namespace {

using test::RunUntil;

class ConsoleSinkTest : public testing::Test {
 protected:
  ConsoleSinkTest() { std::signal(SIGPIPE, SIG_IGN); }

  void MakePipe() {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ours_.reset(ends[1]);
    theirs_.reset(ends[0]);
    ::fcntl(theirs_.get(), F_SETFL, O_NONBLOCK);
  }

  void MakeSocket() {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_.reset(ends[1]);
    theirs_.reset(ends[0]);
    ::fcntl(theirs_.get(), F_SETFL, O_NONBLOCK);
  }

  // False if the system has no terminal left.
  bool MakeTerminal() {
    theirs_.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (!theirs_.valid() || ::grantpt(theirs_.get()) != 0 || ::unlockpt(theirs_.get()) != 0) {
      return false;
    }
    ours_.reset(::open(::ptsname(theirs_.get()), O_WRONLY | O_NOCTTY | O_CLOEXEC));
    termios raw;
    if (!ours_.valid() || ::tcgetattr(ours_.get(), &raw) != 0) return false;
    ::cfmakeraw(&raw);
    return ::tcsetattr(ours_.get(), TCSANOW, &raw) == 0;
  }

  std::unique_ptr<ConsoleSink> MakeSink() {
    return std::make_unique<ConsoleSink>(
        io_, ours_.get(), "stdout", [this](const std::string& text) { warnings_.push_back(text); });
  }

  // What the other side can read without waiting.
  std::string ReadThere() {
    std::string text;
    char buffer[65536];
    for (ssize_t count; (count = ::read(theirs_.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

  // Writes more than the other side accepts, reads it late, and checks that nothing is lost.
  void ExpectAllArrivesLate() {
    const auto sink = MakeSink();
    std::string sent;
    while (sink->HasRoom()) {
      const std::string line = "line " + std::to_string(sent.size()) + "\n";
      sent += line;
      sink->Write(line);
    }
    EXPECT_EQ(::fcntl(ours_.get(), F_GETFL) & O_NONBLOCK, 0)
        << "others who write to the same pipe must not find it non-blocking";
    bool room = false;
    sink->WhenRoom([&] { room = true; });
    std::string received;
    EXPECT_TRUE(RunUntil(io_, [&] {
      received += ReadThere();
      return received.size() >= sent.size();
    }));
    EXPECT_TRUE(received == sent) << received.size() << " of " << sent.size() << " bytes";
    EXPECT_TRUE(room);
    EXPECT_EQ(sink->dropped_bytes(), 0u);
  }

  // Others write to the same pipe, whose reader reads up to `size` bytes at a time.
  void ExpectWholeLinesBesideOthers(std::size_t size) {
    const auto sink = MakeSink();
    const std::string line = std::string(98, 'x') + "\n";
    std::string text;
    for (int i = 0; i < 400; ++i) text += line;
    for (int i = 0; i < 10; ++i) sink->Write(text);
    std::string received;
    std::string buffer(size, '\0');
    std::size_t others = 0;
    ASSERT_TRUE(RunUntil(io_, [&] {
      const ssize_t count = ::read(theirs_.get(), buffer.data(), size);
      if (count > 0) received.append(buffer, 0, static_cast<std::size_t>(count));
      pollfd room = {ours_.get(), POLLOUT, 0};
      if (others < 50 && ::poll(&room, 1, 0) == 1 && ::write(ours_.get(), "other\n", 6) == 6) {
        ++others;
      }
      return others == 50 && received.size() >= 4000 * line.size() + others * 6;
    }));
    std::istringstream lines(received);
    for (std::string text; std::getline(lines, text);) {
      ASSERT_TRUE(text == "other" || text.size() == line.size() - 1) << text;
    }
  }

  boost::asio::io_context io_;
  base::UniqueFd ours_;
  base::UniqueFd theirs_;
  std::vector<std::string> warnings_;
};

TEST_F(ConsoleSinkTest, WhatFitsArrivesAtOnce) {
  MakePipe();
  const auto sink = MakeSink();
  sink->Write("no newline");
  EXPECT_EQ(ReadThere(), "no newline");
}

TEST_F(ConsoleSinkTest, SlowPipeGetsEverythingInOrder) {
  MakePipe();
  ExpectAllArrivesLate();
}

TEST_F(ConsoleSinkTest, SlowSocketGetsEverythingInOrder) {
  MakeSocket();
  ExpectAllArrivesLate();
}

TEST_F(ConsoleSinkTest, SlowTerminalGetsEverythingInOrder) {
  if (!MakeTerminal()) GTEST_SKIP() << "no pseudo-terminals here";
  ExpectAllArrivesLate();
}

TEST_F(ConsoleSinkTest, OtherWritersOfAFullPipeFallBetweenLines) {
  MakePipe();
  ExpectWholeLinesBesideOthers(4096);
}

TEST_F(ConsoleSinkTest, OtherWritersOfAPipeThatIsEmptiedFallBetweenLines) {
  MakePipe();
  ExpectWholeLinesBesideOthers(1024 * 1024);
}

TEST_F(ConsoleSinkTest, ClosedPipeDropsAndTellsOnce) {
  MakePipe();
  const auto sink = MakeSink();
  theirs_.reset();
  sink->Write("one\n");
  sink->Write("two\n");
  EXPECT_EQ(sink->dropped_bytes(), 8u);
  EXPECT_EQ(warnings_, std::vector<std::string>{"write stdout: Broken pipe; output is being lost"});
}

TEST_F(ConsoleSinkTest, PipeThatClosesWhileItIsFullDropsAndMakesRoom) {
  MakePipe();
  const auto sink = MakeSink();
  while (sink->HasRoom()) sink->Write(std::string(4096, 'x'));
  bool room = false;
  sink->WhenRoom([&] { room = true; });
  theirs_.reset();
  EXPECT_TRUE(RunUntil(io_, [&] { return room; }));
  EXPECT_GT(sink->dropped_bytes(), 0u);
}

TEST_F(ConsoleSinkTest, PipeThatWasClosedFromTheStart) {
  MakePipe();
  theirs_.reset();
  const auto sink = MakeSink();
  sink->Write("lost\n");
  EXPECT_EQ(sink->dropped_bytes(), 5u);
}

TEST_F(ConsoleSinkTest, FullDiskDropsAndTellsOnce) {
  ours_.reset(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const auto sink = MakeSink();
  sink->Write("one\n");
  sink->Write("two\n");
  EXPECT_EQ(sink->dropped_bytes(), 8u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0], "write stdout: No space left on device; output is being lost");
}

TEST_F(ConsoleSinkTest, FlushWaitsForASlowReader) {
  MakePipe();
  const auto sink = MakeSink();
  std::size_t sent = 0;
  for (; sink->HasRoom(); sent += 4096) sink->Write(std::string(4096, 'x'));
  std::size_t received = 0;
  ::fcntl(theirs_.get(), F_SETFL, 0);
  std::thread reader([&] {
    char buffer[65536];
    while (received < sent) {
      const ssize_t count = ::read(theirs_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      received += static_cast<std::size_t>(count);
    }
  });
  sink->Flush(test::kDeadline);
  EXPECT_TRUE(sink->HasRoom());
  ours_.reset();  // otherwise a reader that misses something would wait forever
  reader.join();
  EXPECT_EQ(received, sent);
}

TEST_F(ConsoleSinkTest, FlushGivesUpWhenNobodyReads) {
  MakePipe();
  const auto sink = MakeSink();
  while (sink->HasRoom()) sink->Write(std::string(4096, 'x'));
  sink->Flush(std::chrono::milliseconds(20));
  EXPECT_FALSE(sink->HasRoom());
}

TEST_F(ConsoleSinkTest, WhenTheLastByteIsTakenIsTold) {
  MakePipe();
  const auto sink = MakeSink();
  bool written = false;
  sink->WhenWritten([&] { written = true; });
  EXPECT_TRUE(written) << "nothing is pending";
  written = false;
  while (sink->HasRoom()) sink->Write(std::string(4096, 'x'));
  sink->WhenWritten([&] { written = true; });
  EXPECT_FALSE(written);
  EXPECT_TRUE(RunUntil(io_, [&] {
    ReadThere();
    return written;
  }));
  EXPECT_EQ(sink->pending_size(), 0u);
}

TEST_F(ConsoleSinkTest, WhatIsGivenUpIsCounted) {
  MakePipe();
  const auto sink = MakeSink();
  std::size_t sent = 0;
  for (; sink->HasRoom(); sent += 4096) sink->Write(std::string(4096, 'x'));
  EXPECT_EQ(sink->GiveUp() + ReadThere().size(), sent);
  EXPECT_EQ(sink->GiveUp(), 0u);
  EXPECT_GT(sink->dropped_bytes(), 0u);
}

TEST_F(ConsoleSinkTest, StdoutAndStderrInOnePipeShareOneQueue) {
  MakePipe();
  const base::UniqueFd again = base::DuplicateAboveStdio(ours_.get());
  Console console(io_, nullptr, ours_.get(), again.get());
  EXPECT_EQ(&console.sink(StreamKind::kStdout), &console.sink(StreamKind::kStderr));
  const base::UniqueFd other(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Console apart(io_, nullptr, ours_.get(), other.get());
  EXPECT_NE(&apart.sink(StreamKind::kStdout), &apart.sink(StreamKind::kStderr));
}

}  // namespace
}  // namespace muster::worker
