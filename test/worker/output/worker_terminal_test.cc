// Workers whose console is a terminal: what they see, and what the terminal shows.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"
#include "worker/output/pseudo_terminal.h"

namespace muster::worker {
namespace {

// The terminal is a raw pseudo-terminal whose other side this test reads, so that output arrives
// unchanged.
class WorkerTerminalTest : public GroupTest {
 protected:
  WorkerTerminalTest() : theirs_(io_) {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) return;
    theirs_.assign(master);
    terminal_.reset(::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios raw;
    if (::tcgetattr(terminal_.get(), &raw) != 0) return;
    ::cfmakeraw(&raw);
    ::tcsetattr(terminal_.get(), TCSANOW, &raw);
    Resize(24, 80);
    on_terminal_ = std::make_unique<Console>(
        io_, [this](const std::string& text) { warnings_.push_back(text); }, terminal_.get(),
        terminal_.get());
    Read();
  }

  void Resize(unsigned short rows, unsigned short columns) {
    const winsize size = {rows, columns, 0, 0};
    ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
  }

  void Read() {
    theirs_.async_read_some(boost::asio::buffer(buffer_),
                            [this](boost::system::error_code error, std::size_t count) {
                              if (error) return;
                              shown_.append(buffer_.data(), count);
                              Read();
                            });
  }

  void StartOnTerminal(std::vector<WorkerSpec> specs) {
    WorkerGroupCallbacks callbacks;
    callbacks.on_first_failure = [this](const FailureRecord& record) {
      failures_.push_back(record);
    };
    callbacks.on_done = [this](const GroupResult& result) { results_.push_back(result); };
    group_ = std::make_unique<WorkerGroup>(io_, WorkerGroupOptions{.use_cgroup = false},
                                           *on_terminal_, std::move(callbacks));
    group_->Start(std::move(specs));
  }

  bool RunUntilShown(const std::string& text) {
    return test::RunUntil(io_, [&] { return shown_.find(text) != std::string::npos; });
  }

  WorkerSpec Python(const std::string& script) {
    WorkerSpec spec = Sh(0, "");
    spec.argv = {"python3", "-u", "-c", script};
    spec.stderr_spec.keep_tail = true;
    return spec;
  }

  boost::asio::posix::stream_descriptor theirs_;
  base::UniqueFd terminal_;
  std::array<char, 65536> buffer_;
  std::string shown_;
  std::unique_ptr<Console> on_terminal_;
};

// "Under the launcher my progress bars are plain text and the colours are gone."
TEST_F(WorkerTerminalTest, WorkerSeesATerminalOnBothStreamsAndTheReportItsTail) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  StartOnTerminal(
      {Python("import os, sys\n"
              "print(os.isatty(1), os.isatty(2), os.get_terminal_size(2))\n"
              "sys.stderr.write('one\\ntwo\\n'); sys.exit(3)")});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return !results_.empty(); }));
  EXPECT_TRUE(RunUntilShown("True True os.terminal_size(columns=80, lines=24)\n"));
  EXPECT_TRUE(RunUntilShown("one\ntwo\n")) << "no carriage return is added on the way";
  EXPECT_EQ(failures_.at(0).stderr_tail, "one\ntwo\n");
}

TEST_F(WorkerTerminalTest, ItIsNobodysControllingTerminal) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  StartOnTerminal({Python("try: open('/dev/tty')\nexcept OSError as e: print(e.strerror)")});
  EXPECT_TRUE(RunUntilShown("No such device or address\n"));
}

TEST_F(WorkerTerminalTest, WindowThatChangesItsSizeDoesSoForTheWorker) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  const std::string go = dir_.Path("go");
  StartOnTerminal(
      {Python("import os, time\nprint('ready')\n"
              "while os.get_terminal_size(2).columns != 132: time.sleep(0.01)\n"
              "print('wide')")});
  ASSERT_TRUE(RunUntilShown("ready"));
  Resize(43, 132);
  ::raise(SIGWINCH);
  EXPECT_TRUE(RunUntilShown("wide"));
}

// "muster hung at the end when I ran it on a terminal."
TEST_F(WorkerTerminalTest, TheLoopRunsOutOfWorkWhenTheGroupIsDone) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  theirs_.cancel();
  io_.run();
  StartOnTerminal({Python("pass")});
  io_.restart();
  io_.run();
  EXPECT_EQ(results_.size(), 1u);
}

TEST_F(WorkerTerminalTest, NothingIsLostWhenTheWorkerEnds) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  WorkerSpec spec = Sh(0, "seq 100000 >&2");
  spec.stderr_spec.keep_tail = true;
  StartOnTerminal({spec});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return !results_.empty(); }));
  std::string expected;
  for (int i = 1; i <= 100000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(test::RunUntil(io_, [&] { return shown_.size() >= expected.size(); }));
  EXPECT_TRUE(shown_ == expected) << shown_.size();
}

TEST_F(WorkerTerminalTest, UnfinishedLinesAreShownAtOnce) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  WorkerSpec spec = Sh(0, "printf 'no newline' >&2; exec sleep 10000");
  spec.stderr_spec.keep_tail = true;
  StartOnTerminal({spec});
  EXPECT_TRUE(RunUntilShown("no newline"));
  EXPECT_EQ(group_->running(), 1);
}

// A file's readers have no terminal.
TEST_F(WorkerTerminalTest, TeedStreamIsAPipeAndPrefixedOneATerminal) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  WorkerSpec spec = Python("import os; print(os.isatty(1), os.isatty(2))");
  spec.stdout_spec = {.file = dir_.Path("out"), .prefix = "[0]:"};
  spec.stderr_spec = {.prefix = "[0]:", .keep_tail = true};
  StartOnTerminal({spec});
  EXPECT_TRUE(RunUntilShown("[0]:False True\n"));
}

TEST_F(WorkerTerminalTest, TeedProgressBarIsRewrittenInItsLine) {
  if (!on_terminal_) GTEST_SKIP() << "no pseudo-terminals here";
  WorkerSpec spec = Python(
      "import time, os\n"
      "for i in range(3):\n"
      "  os.write(1, b'\\r%d%%' % i)\n"
      "  while not os.path.exists(f'go{i}'): time.sleep(0.01)\n"
      "print('\\ndone')");
  spec.stdout_spec = {.file = dir_.Path("out"), .prefix = "[0]:"};
  spec.argv[3] = "import os; os.chdir('" + dir_.path() + "')\n" + spec.argv[3];
  StartOnTerminal({spec});
  ASSERT_TRUE(RunUntilShown("[0]:0%")) << "before anything ends the line";
  dir_.Write("go0", "");
  ASSERT_TRUE(RunUntilShown("[0]:0%\r[0]:1%"));
  on_terminal_->Write(StreamKind::kStderr, "note\n");
  dir_.Write("go1", "");
  ASSERT_TRUE(RunUntilShown("[0]:0%\r[0]:1%\nnote\n[0]:2%"));
  dir_.Write("go2", "");
  ASSERT_TRUE(RunUntilShown("[0]:2%\r      \r[0]:2%\n[0]:done\n"));
  EXPECT_EQ(ReadAll(dir_.Path("out")), "\r0%\r1%\r2%\ndone\n")
      << "the file has it as it was written";
}

}  // namespace
}  // namespace muster::worker
