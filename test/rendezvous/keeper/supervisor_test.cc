// The keeper as a process, with daemons that a test controls (kept_program.cc).
#include "rendezvous/keeper/supervisor.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/wire/liveness_probe.h"
#include "test/rendezvous/keeper/caller.h"
#include "test/support/command.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::rendezvous {
namespace {

using test::Command;
using test::IsAlive;
using testing::HasSubstr;

constexpr char kSupervisedSession[] = "0123456789abcdef";

class SupervisorTest : public testing::Test {
 protected:
  void TearDown() override {
    keeper_.reset();
    EXPECT_TRUE(test::WaitForProcesses(mark_, 0));
  }

  std::unique_ptr<Command> Start(const std::string& program, const std::string& port) {
    return std::make_unique<Command>(std::vector<std::string>{program, directory_.path(), port},
                                     std::vector<std::string>{mark_});
  }

  // Starts a keeper, and waits until its daemon serves.
  void StartKeeper(const std::string& program = kProgram) {
    keeper_ = Start(program, "0");
    ASSERT_TRUE(keeper_->WaitForOut("left 1")) << keeper_->err();
    port_ = static_cast<std::uint16_t>(std::stoi(Between("port ", "\n")));
    secret_ = SecretFor(KeyOf(1), kSupervisedSession);
  }

  // The output of the keeper and its daemons between the two.
  std::string Between(const std::string& begin, const std::string& end) const {
    const std::size_t from = keeper_->out().find(begin);
    if (from == std::string::npos) return "";
    const std::size_t start = from + begin.size();
    return keeper_->out().substr(start, keeper_->out().find(end, start) - start);
  }
  // A word in the line of the daemon with this number.
  std::string WordOf(int daemon, const std::string& name) const {
    const std::string line = " " + Between("start " + std::to_string(daemon), ".\n") + " ";
    const std::size_t at = line.find(" " + name + "=") + name.size() + 2;
    return line.substr(at, line.find(' ', at) - at);
  }
  pid_t PidOf(int daemon) const { return std::stoi(WordOf(daemon, "pid")); }
  ProbeKey KeyOf(int daemon) const {
    const std::string digits = WordOf(daemon, "key");
    ProbeKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) {
      key[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    }
    return key;
  }

  // What an agent reads from the answer to its probe.
  std::optional<ProbeWord> Probe() const {
    const ProbeNonce nonce = MakeProbeNonce();
    const Caller caller(port_);
    caller.Say(FormatProbe(kSupervisedSession, nonce));
    return VerifyProbeAnswer(secret_, nonce, caller.HearAll().value_or("nothing"));
  }

  bool AnswersPaused() {
    return test::WaitUntil([this] { return Probe() == ProbeWord::kPaused; });
  }

  static constexpr char kProgram[] = "test/rendezvous/keeper/kept_program";

  const std::string mark_ = test::UniqueMark();
  const test::TempDir directory_;
  std::unique_ptr<Command> keeper_;
  std::uint16_t port_ = 0;
  ProbeSecret secret_;
};

TEST_F(SupervisorTest, DaemonThatIsKilledIsStartedAgainWithPortAndKey) {
  StartKeeper();
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
  EXPECT_NE(PidOf(1), PidOf(2));
  EXPECT_EQ(KeyOf(1), KeyOf(2));
  EXPECT_TRUE(Connects(port_));
  EXPECT_THAT(keeper_->err(),
              HasSubstr(" musterd] the daemon was killed by SIGKILL; restarting it\n"));
}

// "A daemon was killed, its disk was full for a minute, and every worker was killed, too."
TEST_F(SupervisorTest, KnocksAreAnsweredForAsLongAsTheDaemonCannotStart) {
  StartKeeper();
  directory_.Write("fail", "");
  kill(PidOf(1), SIGKILL);
  EXPECT_TRUE(AnswersPaused());
  EXPECT_TRUE(keeper_->WaitForErr("exited with code 4; restarting it in 200 ms"));
  EXPECT_TRUE(AnswersPaused());
  // A connection of another protocol is closed, and does not wait.
  const Caller other(port_);
  other.Say("PRI * HTTP/2.0");
  EXPECT_EQ(other.HearAll(), "");
  std::filesystem::remove(directory_.Path("fail"));
  EXPECT_TRUE(keeper_->WaitForOut(", again")) << keeper_->err();
  EXPECT_TRUE(Connects(port_));
}

TEST_F(SupervisorTest, KnocksAreAnsweredWhileTheDaemonReadsAndNoneIsOnceItMayDecide) {
  StartKeeper();
  ASSERT_EQ(mkfifo(directory_.Path("slow").c_str(), 0600), 0);
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("start 2")) << keeper_->err();
  EXPECT_TRUE(AnswersPaused());
  // A probe that is incomplete when the daemon proceeds.
  const std::string line = FormatProbe(kSupervisedSession, MakeProbeNonce());
  const Caller slow(port_);
  slow.Say(line.substr(0, 20));
  EXPECT_TRUE(slow.HearsNothing());
  close(open(directory_.Path("slow").c_str(), O_WRONLY));
  ASSERT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
  slow.Say(line.substr(20));
  EXPECT_EQ(slow.HearAll(), "");
  // The next one belongs to the daemon, which in this test accepts nothing.
  const Caller next(port_);
  next.Say(line);
  EXPECT_TRUE(next.HearsNothing());
}

TEST_F(SupervisorTest, DaemonThatCannotStartAtAllEndsItsKeeperWithItsCode) {
  directory_.Write("fail", "");
  keeper_ = Start(kProgram, "0");
  EXPECT_EQ(keeper_->Wait(), 4);
  EXPECT_EQ(keeper_->err(), "") << "the daemon has said why";
}

TEST_F(SupervisorTest, SupervisorThatIsToldToEndEndsWithItsDaemon) {
  for (const int signal : {SIGTERM, SIGINT}) {
    StartKeeper();
    // The daemon of this test only handles SIGTERM, and is killed by the other one.
    keeper_->Signal(signal);
    EXPECT_EQ(keeper_->Wait(), signal == SIGTERM ? 0 : 128 + SIGINT) << keeper_->err();
    EXPECT_FALSE(Connects(port_));
    std::filesystem::remove(directory_.Path("starts"));
  }
}

TEST_F(SupervisorTest, SupervisorThatIsToldToEndInAPauseEndsAtOnce) {
  StartKeeper();
  directory_.Write("fail", "");
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForErr("restarting it in 800 ms")) << keeper_->err();
  keeper_->Signal(SIGTERM);
  EXPECT_EQ(keeper_->Wait(), 0);
}

TEST_F(SupervisorTest, HangupBringsTheProgramThatIsThereNowAndNothingElseDoes) {
  const std::string program = directory_.Path("program");
  std::filesystem::copy(kProgram, program);
  StartKeeper(program);
  std::filesystem::copy(kProgram, program + ".new");
  std::filesystem::rename(program + ".new", program);
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
  EXPECT_EQ(WordOf(1, "inode"), WordOf(2, "inode")) << "nobody has asked for the new one";
  keeper_->Signal(SIGHUP);
  ASSERT_TRUE(keeper_->WaitForOut("left 3")) << keeper_->err();
  EXPECT_NE(WordOf(2, "inode"), WordOf(3, "inode"));
  EXPECT_EQ(KeyOf(1), KeyOf(3));
  EXPECT_THAT(keeper_->out(), HasSubstr("ends\n"));
  EXPECT_TRUE(Connects(port_));
  // Deleting it does no harm.
  std::filesystem::remove(program);
  keeper_->Signal(SIGHUP);
  ASSERT_TRUE(keeper_->WaitForOut("left 4")) << keeper_->err();
  EXPECT_EQ(WordOf(3, "inode"), WordOf(4, "inode"));
  EXPECT_THAT(keeper_->err(), HasSubstr("; going on with the program as it was"));
}

TEST_F(SupervisorTest, DaemonDiesWithItsKeeperAndTheNextOneStartsAtOnce) {
  StartKeeper();
  const pid_t daemon = PidOf(1);
  keeper_->Signal(SIGKILL);
  // At once: the keeper has not been waited for yet.
  auto next = Start(kProgram, std::to_string(port_));
  EXPECT_EQ(keeper_->Wait(), -SIGKILL);
  EXPECT_TRUE(next->WaitForOut("left 2")) << next->err();
  EXPECT_TRUE(test::WaitUntil([daemon] { return !IsAlive(daemon); }));
  keeper_ = std::move(next);
}

TEST_F(SupervisorTest, SecondKeeperIsRefusedWithThePidThatOneWouldStop) {
  StartKeeper();
  const auto second = Start(kProgram, "0");
  EXPECT_EQ(second->Wait(), 4);
  EXPECT_THAT(second->err(),
              HasSubstr("is in use by the process with pid " + std::to_string(keeper_->pid())));
}

// A daemon that was killed looked like one that had exited cleanly.
TEST_F(SupervisorTest, ParentThatIgnoresItsChildrenMakesNoDifference) {
  keeper_ = std::make_unique<Command>(
      std::vector<std::string>{"env", "--ignore-signal=CHLD", kProgram, directory_.path(), "0"},
      std::vector<std::string>{mark_});
  ASSERT_TRUE(keeper_->WaitForOut("left 1")) << keeper_->err();
  kill(PidOf(1), SIGKILL);
  EXPECT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
}

// No one would notice a daemon that outlives its terminal.
TEST_F(SupervisorTest, SupervisorEndsWithItsTerminal) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execl(kProgram, kProgram, directory_.path().c_str(), "0", nullptr);
    _exit(127);
  }
  std::string said;
  while (said.find("left 1") == std::string::npos) {
    char buffer[256];
    const ssize_t size = read(terminal, buffer, sizeof buffer);
    ASSERT_GT(size, 0) << said;
    said.append(buffer, static_cast<std::size_t>(size));
  }
  close(terminal);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

// "Our log collector was stuck, and with it the daemon."
TEST_F(SupervisorTest, LogThatNobodyReadsLosesLinesAndStopsNobody) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  // Through another file description than the keeper's, which must stay unchanged.
  const int filler =
      open(("/proc/self/fd/" + std::to_string(ends[1])).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  const std::string junk(4096, '.');
  while (write(filler, junk.data(), junk.size()) > 0) {
  }
  keeper_ = std::make_unique<Command>(
      std::vector<std::string>{"sh", "-c", "exec \"$0\" \"$1\" 0 2>/proc/$2/fd/$3", kProgram,
                               directory_.path(), std::to_string(getpid()),
                               std::to_string(ends[1])},
      std::vector<std::string>{mark_});
  ASSERT_TRUE(keeper_->WaitForOut("left 1"));
  for (int daemon = 1; daemon <= 3; ++daemon) {
    kill(PidOf(daemon), SIGKILL);
    ASSERT_TRUE(keeper_->WaitForOut("left " + std::to_string(daemon + 1)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  char buffer[4096];
  while (read(ends[0], buffer, sizeof buffer) > 0) {
  }
  kill(PidOf(4), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("left 5"));
  const ssize_t size = read(ends[0], buffer, sizeof buffer);
  EXPECT_THAT(std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
              testing::MatchesRegex("musterd: 3 lines are missing here: nothing was "
                                    "reading\n.*killed by SIGKILL; restarting it in .*\n"));
  for (const int fd : {ends[0], ends[1], filler}) close(fd);
}

TEST_F(SupervisorTest, ReadyIsSaidOnceWhoeverDiesLater) {
  keeper_ = std::make_unique<Command>(
      std::vector<std::string>{"sh", "-c", "exec \"$0\" \"$1\" 0 3 3>\"$1/ready\"", kProgram,
                               directory_.path()},
      std::vector<std::string>{mark_});
  ASSERT_TRUE(keeper_->WaitForOut("left 1")) << keeper_->err();
  // Daemons of this test report the port they were told to listen on.
  const auto is_ready = [this] { return test::ReadAll(directory_.Path("ready")) == "0\n"; };
  EXPECT_TRUE(test::WaitUntil(is_ready));
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
  keeper_->Signal(SIGTERM);
  EXPECT_EQ(keeper_->Wait(), 0);
  EXPECT_TRUE(is_ready());
}

}  // namespace
}  // namespace muster::rendezvous
