// The keeper as a process, with daemons that a test controls (kept_program.cc).
#include "rendezvous/keeper/keeper.h"

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

#include "rendezvous/wire/knock.h"
#include "test/rendezvous/keeper/caller.h"
#include "test/support/command.h"
#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using test::Command;
using test::IsAlive;
using testing::HasSubstr;

constexpr char kSession[] = "0123456789abcdef";

class KeeperTest : public testing::Test {
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
    secret_ = SecretFor(KeyOf(1), kSession);
  }

  // What the keeper and its daemons said between the two.
  std::string Between(const std::string& begin, const std::string& end) const {
    const std::size_t from = keeper_->out().find(begin);
    if (from == std::string::npos) return "";
    const std::size_t start = from + begin.size();
    return keeper_->out().substr(start, keeper_->out().find(end, start) - start);
  }
  // A line's word of the daemon with this number.
  std::string WordOf(int daemon, const std::string& name) const {
    const std::string line = " " + Between("start " + std::to_string(daemon), ".\n") + " ";
    const std::size_t at = line.find(" " + name + "=") + name.size() + 2;
    return line.substr(at, line.find(' ', at) - at);
  }
  pid_t PidOf(int daemon) const { return std::stoi(WordOf(daemon, "pid")); }
  KnockKey KeyOf(int daemon) const {
    const std::string digits = WordOf(daemon, "key");
    KnockKey key{};
    for (std::size_t i = 0; i < key.size(); ++i) {
      key[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    }
    return key;
  }

  // What an agent makes of the answer to its knock.
  std::optional<KnockWord> Knock() const {
    const KnockNonce nonce = MakeKnockNonce();
    const Caller caller(port_);
    caller.Say(FormatKnock(kSession, nonce));
    return VerifyKnockAnswer(secret_, nonce, caller.HearAll().value_or("nothing"));
  }

  bool AnswersPaused() {
    return test::WaitUntil([this] { return Knock() == KnockWord::kPaused; });
  }

  static constexpr char kProgram[] = "test/rendezvous/keeper/kept_program";

  const std::string mark_ = test::UniqueMark();
  const test::TempDir directory_;
  std::unique_ptr<Command> keeper_;
  std::uint16_t port_ = 0;
  KnockSecret secret_;
};

TEST_F(KeeperTest, DaemonThatIsKilledIsStartedAgainWithPortAndKey) {
  StartKeeper();
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
  EXPECT_NE(PidOf(1), PidOf(2));
  EXPECT_EQ(KeyOf(1), KeyOf(2));
  EXPECT_TRUE(Connects(port_));
  EXPECT_THAT(keeper_->err(),
              HasSubstr(" musterd] the daemon was killed by SIGKILL; starting it again\n"));
}

// "A daemon was killed, its disk was full for a minute, and every worker was killed, too."
TEST_F(KeeperTest, KnocksAreAnsweredForAsLongAsTheDaemonCannotStart) {
  StartKeeper();
  directory_.Write("fail", "");
  kill(PidOf(1), SIGKILL);
  EXPECT_TRUE(AnswersPaused());
  EXPECT_TRUE(keeper_->WaitForErr("exited with code 4; starting it again in 200 ms"));
  EXPECT_TRUE(AnswersPaused());
  // What speaks another protocol is closed, and not left to wait.
  const Caller other(port_);
  other.Say("PRI * HTTP/2.0");
  EXPECT_EQ(other.HearAll(), "");
  std::filesystem::remove(directory_.Path("fail"));
  EXPECT_TRUE(keeper_->WaitForOut(", again")) << keeper_->err();
  EXPECT_TRUE(Connects(port_));
}

TEST_F(KeeperTest, KnocksAreAnsweredWhileTheDaemonReadsAndNoneIsOnceItMayDecide) {
  StartKeeper();
  ASSERT_EQ(mkfifo(directory_.Path("slow").c_str(), 0600), 0);
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForOut("start 2")) << keeper_->err();
  EXPECT_TRUE(AnswersPaused());
  // One that is in the middle of its sentence when the daemon goes on.
  const std::string line = FormatKnock(kSession, MakeKnockNonce());
  const Caller slow(port_);
  slow.Say(line.substr(0, 20));
  EXPECT_TRUE(slow.HearsNothing());
  close(open(directory_.Path("slow").c_str(), O_WRONLY));
  ASSERT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
  slow.Say(line.substr(20));
  EXPECT_EQ(slow.HearAll(), "");
  // The next is the daemon's, which in this test hears nobody.
  const Caller next(port_);
  next.Say(line);
  EXPECT_TRUE(next.HearsNothing());
}

TEST_F(KeeperTest, DaemonThatCannotStartAtAllEndsItsKeeperWithItsCode) {
  directory_.Write("fail", "");
  keeper_ = Start(kProgram, "0");
  EXPECT_EQ(keeper_->Wait(), 4);
  EXPECT_EQ(keeper_->err(), "") << "the daemon has said why";
}

TEST_F(KeeperTest, KeeperThatIsToldToEndEndsWithItsDaemon) {
  for (const int signal : {SIGTERM, SIGINT}) {
    StartKeeper();
    // The daemon of this test knows SIGTERM alone, and is killed by the other.
    keeper_->Signal(signal);
    EXPECT_EQ(keeper_->Wait(), signal == SIGTERM ? 0 : 128 + SIGINT) << keeper_->err();
    EXPECT_FALSE(Connects(port_));
    std::filesystem::remove(directory_.Path("starts"));
  }
}

TEST_F(KeeperTest, KeeperThatIsToldToEndInAPauseEndsAtOnce) {
  StartKeeper();
  directory_.Write("fail", "");
  kill(PidOf(1), SIGKILL);
  ASSERT_TRUE(keeper_->WaitForErr("starting it again in 800 ms")) << keeper_->err();
  keeper_->Signal(SIGTERM);
  EXPECT_EQ(keeper_->Wait(), 0);
}

TEST_F(KeeperTest, HangupBringsTheProgramThatIsThereNowAndNothingElseDoes) {
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
  // Whoever deletes it does no harm.
  std::filesystem::remove(program);
  keeper_->Signal(SIGHUP);
  ASSERT_TRUE(keeper_->WaitForOut("left 4")) << keeper_->err();
  EXPECT_EQ(WordOf(3, "inode"), WordOf(4, "inode"));
  EXPECT_THAT(keeper_->err(), HasSubstr("; going on with the program as it was"));
}

TEST_F(KeeperTest, DaemonDiesWithItsKeeperAndTheNextOneStartsAtOnce) {
  StartKeeper();
  const pid_t daemon = PidOf(1);
  keeper_->Signal(SIGKILL);
  // In the same breath: nobody has waited for the keeper yet.
  auto next = Start(kProgram, std::to_string(port_));
  EXPECT_EQ(keeper_->Wait(), -SIGKILL);
  EXPECT_TRUE(next->WaitForOut("left 2")) << next->err();
  EXPECT_TRUE(test::WaitUntil([daemon] { return !IsAlive(daemon); }));
  keeper_ = std::move(next);
}

TEST_F(KeeperTest, SecondKeeperIsRefusedWithThePidThatOneWouldStop) {
  StartKeeper();
  const auto second = Start(kProgram, "0");
  EXPECT_EQ(second->Wait(), 4);
  EXPECT_THAT(second->err(),
              HasSubstr("is in use by the process with pid " + std::to_string(keeper_->pid())));
}

// A daemon that was killed looked like one that had ended in good order.
TEST_F(KeeperTest, ParentThatIgnoresItsChildrenMakesNoDifference) {
  keeper_ = std::make_unique<Command>(
      std::vector<std::string>{"env", "--ignore-signal=CHLD", kProgram, directory_.path(), "0"},
      std::vector<std::string>{mark_});
  ASSERT_TRUE(keeper_->WaitForOut("left 1")) << keeper_->err();
  kill(PidOf(1), SIGKILL);
  EXPECT_TRUE(keeper_->WaitForOut("left 2")) << keeper_->err();
}

// Nobody would look for a daemon that outlives the terminal it was started at.
TEST_F(KeeperTest, KeeperEndsWithItsTerminal) {
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

// "The collector of our logs stood still, and with it the daemon."
TEST_F(KeeperTest, LogThatNobodyReadsLosesLinesAndStopsNobody) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  // By another description than the keeper's, which must stay as it was.
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
                                    "reading\n.*killed by SIGKILL; starting it again in .*\n"));
  for (const int fd : {ends[0], ends[1], filler}) close(fd);
}

TEST_F(KeeperTest, ReadyIsSaidOnceWhoeverDiesLater) {
  keeper_ = std::make_unique<Command>(
      std::vector<std::string>{"sh", "-c", "exec \"$0\" \"$1\" 0 3 3>\"$1/ready\"", kProgram,
                               directory_.path()},
      std::vector<std::string>{mark_});
  ASSERT_TRUE(keeper_->WaitForOut("left 1")) << keeper_->err();
  // Daemons of this test name the port that they were told to listen at.
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
