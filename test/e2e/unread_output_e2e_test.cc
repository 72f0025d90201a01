// An agent whose stdout or stderr is not read: a signal still ends it, and without one a late
// reader still gets everything.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

// More than a pipe holds, and less than what blocks a worker.
constexpr char kPrintsAndFails[] = "seq 40000; exit 3";

class UnreadOutputTest : public E2eTest {
 protected:
  UnreadOutputTest() {
    EXPECT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
    // Held open, so that writers have a reader that does not read.
    reader_ = ::open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~UnreadOutputTest() override { ::close(reader_); }

  // An agent with `redirection` (">" or "2>") into the pipe, and a script as its worker's program.
  Command StartInto(const std::string& redirection, std::vector<std::string> flags,
                    const std::string& script) {
    std::vector<std::string> argv = Joined(
        {"sh", "-c", "exec \"$@\" " + redirection + "\"$0\"", Path("pipe"), MusterPath(), "run"},
        flags);
    argv.insert(argv.end(), {"--no-python", "sh", "-c", script});
    return Command(std::move(argv), Environment());
  }

  std::string ReadPipe() const {
    std::string text;
    char buffer[65536];
    for (ssize_t count; (count = ::read(reader_, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

  bool PipeIsFull() const {
    const int writer = ::open(Path("pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    pollfd writable = {writer, POLLOUT, 0};
    const bool full = ::poll(&writable, 1, 0) == 0;
    ::close(writer);
    return full;
  }

  int reader_ = -1;
};

// "I stopped the pager that read my job's output, and the job could no longer be stopped."
TEST_F(UnreadOutputTest, OneSignalEndsARunWhoseStdoutNobodyReads) {
  Command agent = StartInto(">", {"--standalone", "--tee=3", "--shutdown-timeout=1"}, "exec yes");
  ASSERT_TRUE(WaitUntil([this] { return PipeIsFull(); }));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 128 + SIGTERM);
  EXPECT_TRUE(Contains(agent.err(), "stdout: nothing read the last "));
  EXPECT_TRUE(Contains(agent.err(), "was interrupted by SIGTERM"));
}

TEST_F(UnreadOutputTest, SignalsThatFollowEndItToo) {
  Command agent = StartInto(">", {"--standalone", "--tee=3", "--shutdown-timeout=1"}, "exec yes");
  ASSERT_TRUE(WaitUntil([this] { return PipeIsFull(); }));
  agent.Signal(SIGTERM);
  ASSERT_TRUE(agent.WaitForErr("was interrupted by SIGTERM")) << agent.err();
  agent.Signal(SIGINT);
  EXPECT_EQ(agent.Wait(), 128 + SIGTERM);
}

TEST_F(UnreadOutputTest, OneSignalEndsARunWhoseStderrNobodyReads) {
  Command agent = StartInto("2>", {"--standalone"}, "echo started; yes >&2");
  ASSERT_TRUE(agent.WaitForOut("started"));
  ASSERT_TRUE(WaitUntil([this] { return PipeIsFull(); }));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 128 + SIGTERM);
}

TEST_F(UnreadOutputTest, SignalsAfterTheWorkersHaveEndedEndTheRunAsTheyDid) {
  Command agent = StartInto(">", {"--standalone", "--tee=3"}, kPrintsAndFails);
  ASSERT_TRUE(agent.WaitForErr("exitcode")) << agent.err();
  ASSERT_TRUE(PipeIsFull());
  agent.Signal(SIGTERM);
  agent.Signal(SIGINT);
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_TRUE(Contains(agent.err(), "stdout: nothing read the last "));
}

TEST_F(UnreadOutputTest, WithoutASignalAReaderWhoComesLateGetsEverything) {
  Command agent = StartInto(">", {"--standalone", "--tee=3"}, kPrintsAndFails);
  ASSERT_TRUE(agent.WaitForErr("exitcode")) << agent.err();
  std::string text;
  EXPECT_TRUE(WaitUntil([&] {
    text += ReadPipe();
    return text.find("]:40000\n") != std::string::npos;
  }));
  EXPECT_EQ(Lines(text).size(), 40000u);
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_EQ(agent.err().find("nothing read"), std::string::npos) << agent.err();
}

// "muster run ... 2>&1 | head" never exited, and its workers stayed as zombies: the message that
// the terminal was gone was written from inside another write.
TEST_F(UnreadOutputTest, ARunWhoseReaderHasGoneEndsAsItsWorkersDid) {
  Command failing({"sh", "-c", "{ \"$@\"; echo $? >\"$0\"; } 2>&1 | true", Path("code"),
                   MusterPath(), "run", "--standalone", "--no-python", "sh", "-c", "exit 3"},
                  Environment());
  EXPECT_EQ(failing.Wait(), 0);
  int code = -1;
  std::ifstream(Path("code")) >> code;
  EXPECT_EQ(code, 1);
}

}  // namespace
}  // namespace muster::test
