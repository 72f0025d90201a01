// A run that goes on without a terminal: shown again, stopped, killed.
#include <fcntl.h>
#include <sys/file.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/run_until.h"

namespace muster::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DetachTest : public E2eTest {
 protected:
  struct Result {
    std::optional<int> code;
    std::string out;
    std::string err;
  };

  Command Start(std::vector<std::string> argv) const {
    argv.insert(argv.begin(), MusterPath());
    std::vector<std::string> environment = Environment();
    environment.push_back("XDG_STATE_HOME=" + Path("state"));
    return Command(std::move(argv), environment);
  }
  Result Run(std::vector<std::string> argv) const {
    Command command = Start(std::move(argv));
    const std::optional<int> code = command.Wait();
    return {code, command.out(), command.err()};
  }
  Result Detach(std::vector<std::string> flags, const std::string& script) const {
    flags.insert(flags.begin(), {"run", "--detach"});
    flags.insert(flags.end(), {"--no-python", "sh", "-c", script});
    return Run(std::move(flags));
  }
  // Until the file is there.
  std::string Until(const std::string& name) const {
    return "until [ -e " + Path(name) + " ]; do sleep 0.02; done; ";
  }
  // "... (pid 17) goes on ..."
  static pid_t PidIn(const std::string& text) {
    const std::size_t at = text.find("(pid ");
    int pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(text.substr(at + 5, text.find(')', at) - at - 5), &pid)) << text;
    return pid;
  }
};

TEST_F(DetachTest, ARunGoesOnAndIsShownUntilItsEnd) {
  const Result begun = Detach({"--rdzv-id=d1", "--nproc-per-node=2"},
                              "echo hello $RANK; " + Until("go") + "echo bye $RANK; exit 7");
  ASSERT_EQ(begun.code, 0) << begun.err;
  EXPECT_THAT(begun.out, HasSubstr("`muster attach d1` shows it, `muster stop d1` ends it\n"));
  Command attached = Start({"attach", "d1"});
  ASSERT_TRUE(attached.WaitForOut("hello 0"));
  ASSERT_TRUE(attached.WaitForOut("hello 1"));
  // Who looks may leave.
  attached.Signal(SIGINT);
  EXPECT_EQ(attached.Wait(), -SIGINT);
  Command again = Start({"attach", absl::StrCat(PidIn(begun.out))});
  ASSERT_TRUE(again.WaitForOut("hello 0"));
  EXPECT_THAT(again.out(), Not(HasSubstr("bye")));
  Write("go", "");
  EXPECT_EQ(again.Wait(), 1) << "as a run in a terminal";
  EXPECT_THAT(again.out(), HasSubstr("bye "));
  EXPECT_THAT(again.out(), HasSubstr("exitcode  : 7")) << "the report";
  const Result later = Run({"attach", "d1"});
  EXPECT_EQ(later.code, 1);
  EXPECT_EQ(later.out, again.out());
}

TEST_F(DetachTest, ARunIsStoppedAsByCtrlC) {
  const Result begun = Detach(
      {"--rdzv-id=d2"}, "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done");
  ASSERT_EQ(begun.code, 0) << begun.err;
  Command attached = Start({"attach", "d2"});
  ASSERT_TRUE(attached.WaitForOut("ready"));
  const Result stopped = Run({"stop", "d2"});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(stopped.out, absl::StrCat("run 'd2' (pid ", PidIn(begun.out), ") has ended\n"));
  EXPECT_EQ(attached.Wait(), 128 + SIGTERM);
  EXPECT_THAT(attached.out(), HasSubstr("saved"));
  EXPECT_EQ(Run({"stop", "d2"}).code, 2) << "there is none any more";
}

TEST_F(DetachTest, OneThatHasJustBegunIsStopped) {
  ASSERT_EQ(Detach({"--rdzv-id=d3"}, "exec sleep 1000").code, 0);
  EXPECT_EQ(Run({"stop", "d3"}).code, 0);
}

TEST_F(DetachTest, StopReturnsInTime) {
  ASSERT_EQ(Detach({"--rdzv-id=d4", "--shutdown-timeout=1000"},
                   "trap 'touch " + Path("asked") + "' TERM; echo ready; " + Until("go") + ":")
                .code,
            0);
  Command attached = Start({"attach", "d4"});
  ASSERT_TRUE(attached.WaitForOut("ready"));
  const Result stopped = Run({"stop", "--timeout=0.05", "d4"});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("has not ended in time, and goes on ending"));
  Write("go", "");
  EXPECT_TRUE(attached.Wait().has_value());
}

// `muster stop --timeout` returned, and a second `muster stop` killed workers that were saving.
TEST_F(DetachTest, ASecondStopLeavesWorkersTheirTime) {
  ASSERT_EQ(Detach({"--rdzv-id=d8", "--shutdown-timeout=1000"},
                   "trap 'echo saving; " + Until("go") +
                       "echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done")
                .code,
            0);
  Command attached = Start({"attach", "d8"});
  ASSERT_TRUE(attached.WaitForOut("ready"));
  EXPECT_EQ(Run({"stop", "--timeout=0.05", "d8"}).code, 1);
  ASSERT_TRUE(attached.WaitForOut("saving"));
  ASSERT_TRUE(WaitUntil([&] { return Run({"ps"}).out.find("stopping") != std::string::npos; }));
  EXPECT_EQ(Run({"stop", "--timeout=0.05", "d8", "d8"}).code, 1);
  Write("go", "");
  EXPECT_EQ(attached.Wait(), 128 + SIGTERM);
  EXPECT_THAT(attached.out(), HasSubstr("saved"));
}

// `muster stop 4711` meant both the run with that id, as Slurm's jobs have, and the one with that
// pid.
TEST_F(DetachTest, ANumberIsARunIdBeforeItIsAPid) {
  const Result begun = Detach({"--rdzv-id=d11"}, "echo ready; " + Until("go") + "echo other");
  ASSERT_EQ(begun.code, 0) << begun.err;
  const std::string number = absl::StrCat(PidIn(begun.out));
  ASSERT_EQ(Detach({"--rdzv-id=" + number}, "echo mine; sleep 10000").code, 0);
  Command attached = Start({"attach", number});
  ASSERT_TRUE(attached.WaitForOut("mine"));
  EXPECT_EQ(Run({"stop", number}).code, 0);
  EXPECT_EQ(attached.Wait(), 128 + SIGTERM);
  // The one with that pid goes on, and is meant once no other has that id.
  EXPECT_THAT(Run({"ps"}).out, HasSubstr("d11"));
  const Result stopped = Run({"stop", number});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_THAT(stopped.out, HasSubstr("run 'd11'"));
}

// `muster stop mine typo` said that there is no run 'typo', and ended 'mine' all the same.
TEST_F(DetachTest, NoneIsStoppedWhereOneIsNotThere) {
  ASSERT_EQ(Detach({"--rdzv-id=d9"},
                   "trap 'echo asked' TERM; echo ready; " + Until("go") + "echo through")
                .code,
            0);
  Command attached = Start({"attach", "d9"});
  ASSERT_TRUE(attached.WaitForOut("ready"));
  EXPECT_EQ(Run({"stop", "d9", "typo"}).code, 2);
  Write("go", "");
  EXPECT_EQ(attached.Wait(), 0);
  EXPECT_THAT(attached.out(), HasSubstr("through"));
  EXPECT_THAT(attached.out(), Not(HasSubstr("asked")));
}

// `muster stop big` ended another run, which had the pid here that 'big' has in another container.
TEST_F(DetachTest, ARunOfAnotherContainerIsNotTakenForTheOneWithItsPid) {
  const Result begun = Detach({"--rdzv-id=d10"}, "echo ready; " + Until("go") + ":");
  ASSERT_EQ(begun.code, 0) << begun.err;
  const std::string big = absl::StrCat("state/muster/detached/big-", PidIn(begun.out));
  Write(big + ".out", "");
  Write(big + ".end", "");
  const base::UniqueFd end(::open(Path(big + ".end").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(end.get(), LOCK_EX | LOCK_NB), 0) << "big lives";
  const Result stopped = Run({"stop", "big"});
  EXPECT_EQ(stopped.code, 4);
  EXPECT_THAT(stopped.err, HasSubstr("is in another container"));
  Write("go", "");
  EXPECT_EQ(Run({"attach", "d10"}).code, 0);
}

// `muster attach` showed a run that had ended, and not the later one of that name, which went on.
TEST_F(DetachTest, OfTwoWithOneNameTheLaterIsShown) {
  const Result first = Detach({"--rdzv-id=d11"}, Until("go") + "echo first");
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(Detach({"--rdzv-id=d11"}, "echo second; " + Until("on") + ":").code, 0);
  Write("go", "");
  EXPECT_EQ(Run({"attach", absl::StrCat(PidIn(first.out))}).code, 0);
  Command attached = Start({"attach", "d11"});
  EXPECT_TRUE(attached.WaitForOut("second"));
  Write("on", "");
  EXPECT_EQ(attached.Wait(), 0);
  EXPECT_THAT(attached.out(), Not(HasSubstr("first")));
}

// Who emptied the file, for room, saw nothing more of the run in `muster attach`.
TEST_F(DetachTest, OutputThatWasCutIsShownFromItsBeginning) {
  const Result begun =
      Detach({"--rdzv-id=d12"}, "echo a long line before; " + Until("go") + "echo after");
  ASSERT_EQ(begun.code, 0) << begun.err;
  Command attached = Start({"attach", "d12"});
  ASSERT_TRUE(attached.WaitForOut("before"));
  Write(absl::StrCat("state/muster/detached/d12-", PidIn(begun.out), ".out"), "");
  Write("go", "");
  EXPECT_EQ(attached.Wait(), 0);
  EXPECT_THAT(attached.out(), HasSubstr("after"));
  EXPECT_THAT(attached.err(), HasSubstr("the output was cut"));
}

TEST_F(DetachTest, WhoLooksIsToldOfARunThatWasKilled) {
  const Result begun = Detach({"--rdzv-id=d5"}, "echo ready; exec sleep 1000");
  ASSERT_EQ(begun.code, 0);
  Command attached = Start({"attach", "d5"});
  ASSERT_TRUE(attached.WaitForOut("ready"));
  ASSERT_EQ(::kill(PidIn(begun.out), SIGKILL), 0);
  EXPECT_EQ(attached.Wait(), 4);
  EXPECT_THAT(attached.err(), HasSubstr("the run was killed before it could say how it ended"));
  EXPECT_TRUE(WaitForProcesses(mark(), 0));
}

TEST_F(DetachTest, ARunInATerminalIsStopped) {
  Command run = StartAgent({"--rdzv-id=d6"}, "echo ready; exec sleep 1000");
  ASSERT_TRUE(run.WaitForOut("ready"));
  // It is entered a moment after its workers have started.
  ASSERT_TRUE(WaitUntil([&] { return Run({"ps"}).out.find("d6") != std::string::npos; }));
  EXPECT_EQ(Run({"stop", absl::StrCat(run.pid())}).code, 0);
  EXPECT_EQ(run.Wait(), 128 + SIGTERM);
}

TEST_F(DetachTest, AMistakeIsSaidInTheTerminal) {
  const Result bad = Detach({"--nproc-per-node=many"}, ":");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("--nproc-per-node"));
  Write("state", "a file in the way");
  const Result no_place = Detach({}, ":");
  EXPECT_EQ(no_place.code, 4);
  EXPECT_THAT(no_place.err, HasSubstr("muster run: --detach: make " + Path("state")));
}

TEST_F(DetachTest, WhatIsNotThereIsSaid) {
  const Result attach = Run({"attach", "nobody"});
  EXPECT_EQ(attach.code, 2);
  EXPECT_EQ(attach.err,
            "muster attach: no run 'nobody' was started with --detach on this machine by this "
            "user\n");
  EXPECT_EQ(Run({"attach"}).code, 2);
  EXPECT_EQ(Run({"stop"}).code, 2);
  EXPECT_EQ(Run({"stop", "--timeout", "x", "d"}).code, 2);
  EXPECT_EQ(Run({"stop", "--force", "d"}).code, 2);
}

TEST_F(DetachTest, OfMuchOutputTheLastIsShownFirst) {
  ASSERT_EQ(Detach({"--rdzv-id=d7"},
                   "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo ready; " +
                       Until("go") + ":")
                .code,
            0);
  Command all = Start({"attach", "--all", "d7"});
  ASSERT_TRUE(all.WaitForOut("ready"));
  Command last = Start({"attach", "d7"});
  ASSERT_TRUE(last.WaitForOut("ready"));
  EXPECT_THAT(all.out(), HasSubstr("line 0\n"));
  EXPECT_THAT(last.out(), Not(HasSubstr("line 0\n")));
  EXPECT_THAT(last.out(), testing::StartsWith("line "));
  EXPECT_THAT(last.err(), HasSubstr("what it printed before is in "));
  Write("go", "");
  EXPECT_EQ(all.Wait(), 0);
  EXPECT_EQ(last.Wait(), 0);
}

}  // namespace
}  // namespace muster::test
