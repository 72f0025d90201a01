// `muster top` on a real terminal (tmux), 80 x 24 and without colours unless a test needs others.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/tmux.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class TopTest : public E2eTest {
 protected:
  void SetUp() override {
    if (!Succeeds({"sh", "-c", "command -v tmux"})) GTEST_SKIP() << "there is no tmux";
    daemon_.emplace(std::vector<std::string>{DaemonPath(), "--listen=" + port_.endpoint(),
                                             "--state-dir=" + Path("state")});
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
  }

  std::string Top(const std::string& more = "") const {
    return MusterPath() + " top --rdzv-endpoint=" + port_.endpoint() + " " + more;
  }
  Tmux Terminal() const {
    std::vector<std::string> environment = Environment();
    environment.push_back("NO_COLOR=1");
    return Tmux(80, 24, environment);
  }
  Command StartJob(const std::string& name, const std::vector<std::string>& more,
                   const std::string& script) {
    std::vector<std::string> flags =
        Joined({"--nnodes=1", "--nproc-per-node=4", "--rdzv-id=" + name, "--rdzv-conf=is_host=0",
                "--rdzv-endpoint=" + port_.endpoint()},
               more);
    return StartAgent(flags, script);
  }
  // One that waits for the file "end".
  void EndJob(Command& agent) const {
    Write("end", "");
    EXPECT_EQ(agent.Wait(), 0) << agent.err();
  }
  static void Quit(Tmux& terminal) {
    terminal.Press("q");
    EXPECT_TRUE(terminal.Shows("ready>")) << terminal.Text();
  }
  // Its pid; -1 if there is none.
  pid_t TopProcess() const {
    for (const pid_t pid : ProcessesWith(mark())) {
      std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
      std::string line;
      std::getline(file, line);
      if (line.starts_with(MusterPath() + std::string("\0top", 4))) return pid;
    }
    return -1;
  }

  const HeldPort port_;
  std::optional<Command> daemon_;
};

TEST_F(TopTest, JobFailsRestartsAndEndsWhileOneLooks) {
  Tmux terminal = Terminal();
  terminal.Enter("TERM=vt100 " + Top());
  ASSERT_TRUE(terminal.Shows("there are no jobs")) << terminal.Text();
  Command agent = StartJob("job7", {"--max-restarts=1"},
                           "[ $RANK$TORCHELASTIC_RESTART_COUNT = 20 ] && { " + Until("fail") +
                               "; exit 3; }; " + Until("end"));
  ASSERT_TRUE(terminal.Shows("> job7  running  0 ")) << terminal.Text();
  terminal.Press("Enter");
  ASSERT_TRUE(terminal.Shows("     0  rrrr")) << terminal.Text();
  Write("fail", "");
  ASSERT_TRUE(terminal.Shows("     0  rrRr")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("over: rank 2 on host "));
  EXPECT_THAT(terminal.Text(), HasSubstr("exited with code 3 (restart 1 of 1)"));
  EXPECT_THAT(terminal.Text(), HasSubstr("restarts 1 of 1"));
  terminal.Press("l");
  terminal.Press("Right");
  ASSERT_TRUE(terminal.Shows("> rank 2 on ")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("has failed once, last in round 0: rank 2"));
  terminal.Press("Enter");
  ASSERT_TRUE(terminal.Shows("RANK          rank 2")) << terminal.Text();
  terminal.Press("Escape");
  ASSERT_TRUE(terminal.Shows("[ROUNDS]")) << terminal.Text();
  EndJob(agent);
  ASSERT_TRUE(terminal.Shows("job7  succeeded  round 1")) << terminal.Text();
  Quit(terminal);
}

// "The grid says that rank 1 has failed, and to see what it printed I need another terminal."
TEST_F(TopTest, WhatARankPrintsIsReadBesideTheGridAndThroughARestart) {
  Tmux terminal = Terminal();
  Command agent = StartJob(
      "job7",
      {"--nproc-per-node=2", "--max-restarts=1", "--redirects=3", "--log-dir=" + Path("logs")},
      "echo attempt $TORCHELASTIC_RESTART_COUNT of $RANK; printf '\\033[2Jno \\033[31mclearing\\n' "
      ">&2; " +
          Until("more") + "; echo more of $RANK; [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && { " +
          Until("fail") + "; exit 3; }; " + Until("end"));
  ASSERT_TRUE(daemon_->WaitForErr("started 2 workers")) << agent.err();
  terminal.Enter("TERM=vt100 " + Top("job7"));
  // Before the job is known there is no rank to select.
  ASSERT_TRUE(terminal.Shows("> rank 0 on ")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("o output"));
  terminal.Press("o");
  ASSERT_TRUE(terminal.Shows("   attempt 0 of 0\n")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("2> ^[[2Jno clearing\n")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("o close"));
  terminal.Press("Right");
  ASSERT_TRUE(terminal.Shows("   attempt 0 of 1\n")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), Not(HasSubstr("attempt 0 of 0")));
  Write("more", "");
  ASSERT_TRUE(terminal.Shows("   more of 1\n")) << terminal.Text();
  Write("fail", "");
  ASSERT_TRUE(terminal.Shows("-- round 1 begins: rank 1 on host ")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("   attempt 1 of 1\n")) << terminal.Text();
  terminal.Press("p");
  ASSERT_TRUE(terminal.Shows("-- end of what rank 1 printed in the round before"))
      << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("   attempt 0 of 1\n"));
  EXPECT_THAT(terminal.Text(), Not(HasSubstr("attempt 1 of 1")));
  terminal.Press("p");
  ASSERT_TRUE(terminal.Shows("   attempt 1 of 1\n")) << terminal.Text();
  terminal.Press("Enter");
  ASSERT_TRUE(terminal.Hides("[OUTPUT]")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("OF RANK 1"));
  Write("end", "");
  ASSERT_TRUE(terminal.Shows("-- the job has ended; rank 1 prints nothing more"))
      << terminal.Text();
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_THAT(terminal.Text(), HasSubstr("   attempt 1 of 1\n"));
  terminal.Press("Escape");
  terminal.Press("o");
  ASSERT_TRUE(terminal.Shows("[ROUNDS]")) << terminal.Text();
  Quit(terminal);
}

// "I had scrolled to the traceback, the daemon was updated, and the pane started over."
TEST_F(TopTest, OutputGoesOnWhereItWasWhenTheDaemonIsBack) {
  Command agent = StartJob(
      "job7", {"--nproc-per-node=1", "--redirects=3", "--log-dir=" + Path("logs")},
      "i=1; while [ $i -le 60 ]; do echo line $i; i=$((i + 1)); done; echo begun; " +
          Until("unseen") + "; echo printed unseen; " + Until("end") + "; echo seen to the end");
  Tmux terminal = Terminal();
  terminal.Enter(Top());
  ASSERT_TRUE(terminal.Shows("> job7  running")) << terminal.Text();
  terminal.Press("Enter");
  terminal.Press("o");
  ASSERT_TRUE(terminal.Shows("   begun\n")) << terminal.Text();
  terminal.Press("PageUp");
  terminal.Press("PageUp");
  ASSERT_TRUE(terminal.Shows("f: the last ones")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("   line 30\n")) << terminal.Text();
  const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
  ASSERT_EQ(children.size(), 1u);
  daemon_->Signal(SIGSTOP);
  kill(children.front(), SIGKILL);
  ASSERT_TRUE(terminal.Shows("trying again")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("   line 30\n")) << "what was read is still there";
  Write("unseen", "");
  daemon_->Signal(SIGCONT);
  ASSERT_TRUE(terminal.Shows("live")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("   line 30\n")) << "and where it was";
  terminal.Press("f");
  ASSERT_TRUE(terminal.Shows("   printed unseen\n")) << terminal.Text();
  const std::string text = terminal.Text();
  EXPECT_THAT(text, HasSubstr("   line 60\n   begun\n-- " + port_.endpoint() + ": "));
  EXPECT_EQ(text.find("begun"), text.rfind("begun")) << "nothing came twice: " << text;
  Write("end", "");
  ASSERT_TRUE(terminal.Shows("   seen to the end\n")) << terminal.Text();
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  Quit(terminal);
}

TEST_F(TopTest, HowFarRanksHaveComeIsShownWhereTheirWorkersTell) {
  Command agent = StartJob("job7", {"--nproc-per-node=2"},
                           "python3 -c 'import os, socket\n"
                           "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                           "s.sendto(b\"beat %s 1213 loss=0.25\" % os.environb[b\"RANK\"], "
                           "os.environ[\"MUSTER_BEAT_SOCKET\"])'; " +
                               Until("end"));
  ASSERT_TRUE(daemon_->WaitForErr("started 2 workers")) << agent.err();
  // As wide as the column's heading at least.
  std::string host = HostName();
  host.resize(std::max(host.size(), std::string("HOST").size()), ' ');
  Tmux terminal = Terminal();
  terminal.Enter(Top("job7"));
  ASSERT_TRUE(terminal.Shows("local rank 0: running, step 1213, loss 0.25")) << terminal.Text();
  terminal.Press("Right");
  terminal.Press("Tab");
  terminal.Press("Tab");
  ASSERT_TRUE(terminal.Shows("> 1     " + host + "  1213  0.25")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("  STEP  LOSS  STRAGGLER"));
  EndJob(agent);
  Quit(terminal);
}

// A terminal left without echo, or on the alternate screen, is unusable.
TEST_F(TopTest, HoweverItEndsTheTerminalIsAsItWas) {
  Tmux terminal = Terminal();
  const auto ends = [&](const std::string& name, const std::string& code, auto end) {
    // The typed text differs from the printed one.
    terminal.Enter("clear; stty -g >" + Path("before") + "; " + Top() + "; echo " + name +
                   "=$?; stty -g >" + Path("after") + "; cmp " + Path("before") + " " +
                   Path("after") + " && echo " + name + "=\"same\"");
    ASSERT_TRUE(terminal.Shows("there are no jobs")) << terminal.Text();
    end();
    ASSERT_TRUE(terminal.Shows(name + "=same\n")) << terminal.Text();
    EXPECT_THAT(terminal.Text(), HasSubstr(name + "=" + code + "\n"));
    EXPECT_THAT(terminal.Text(), Not(HasSubstr("there are no jobs")));
    EXPECT_THAT(terminal.Text(), HasSubstr("ready>"));
  };
  ends("quit", "0", [&] { terminal.Press("q"); });
  ends("interrupted", "130", [&] { terminal.Press("C-c"); });
  ends("quitted", "131", [&] { terminal.Press("C-\\"); });
  ends("terminated", "143", [&] { kill(TopProcess(), SIGTERM); });
}

TEST_F(TopTest, StoppedItLeavesTheTerminalAndContinuedItTakesItAgain) {
  Tmux terminal = Terminal();
  terminal.Enter(Top());
  ASSERT_TRUE(terminal.Shows("there are no jobs")) << terminal.Text();
  terminal.Press("C-z");
  ASSERT_TRUE(terminal.Shows("ready>")) << terminal.Text();
  terminal.Enter("echo mean$((1 + 1))while");
  ASSERT_TRUE(terminal.Shows("mean2while")) << terminal.Text();
  terminal.Enter("fg");
  ASSERT_TRUE(terminal.Shows("there are no jobs")) << terminal.Text();
  terminal.Press("q");
  EXPECT_TRUE(terminal.Shows("mean2while")) << terminal.Text();
}

TEST_F(TopTest, DaemonDiesAndComesBackWhileOneLooks) {
  Command agent = StartJob("job7", {}, Until("end"));
  Tmux terminal = Terminal();
  terminal.Enter(Top());
  ASSERT_TRUE(terminal.Shows("> job7  running")) << terminal.Text();
  terminal.Press("Enter");
  ASSERT_TRUE(terminal.Shows("rrrr")) << terminal.Text();
  const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
  ASSERT_EQ(children.size(), 1u);
  // The stopped keeper does not restart the daemon until it is continued.
  daemon_->Signal(SIGSTOP);
  kill(children.front(), SIGKILL);
  ASSERT_TRUE(terminal.Shows("trying again")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("! " + port_.endpoint() + ": "));
  EXPECT_THAT(terminal.Text(), HasSubstr("rrrr")) << "what was known is still there";
  daemon_->Signal(SIGCONT);
  ASSERT_TRUE(terminal.Shows("live")) << terminal.Text();
  ASSERT_TRUE(terminal.Shows("job7  running")) << terminal.Text();
  EndJob(agent);
  ASSERT_TRUE(terminal.Shows("job7  succeeded")) << terminal.Text();
  Quit(terminal);
}

TEST_F(TopTest, TerminalThatChangesItsSizeIsDrawnAnew) {
  Command agent = StartJob("job7", {}, Until("end"));
  ASSERT_TRUE(daemon_->WaitForErr("started 4 workers")) << agent.err();
  Tmux terminal = Terminal();
  terminal.Enter(Top("job7"));
  ASSERT_TRUE(terminal.Shows("rrrr")) << terminal.Text();
  terminal.Resize(120, 40);
  ASSERT_TRUE(terminal.Shows("R before")) << terminal.Text();
  terminal.Resize(60, 16);
  ASSERT_TRUE(terminal.Hides("R before")) << terminal.Text();
  EXPECT_TRUE(terminal.Shows("rrrr")) << terminal.Text();
  terminal.Resize(20, 5);
  ASSERT_TRUE(terminal.Shows("too small: 40 x 12")) << terminal.Text();
  terminal.Resize(80, 24);
  ASSERT_TRUE(terminal.Shows("rrrr")) << terminal.Text();
  Quit(terminal);
  EndJob(agent);
}

TEST_F(TopTest, ColoursAreThereWhereTheTerminalHasThem) {
  Command agent = StartJob("job7", {}, Until("end"));
  ASSERT_TRUE(daemon_->WaitForErr("started 4 workers")) << agent.err();
  Tmux terminal = Terminal();
  const auto colours = [&] { return terminal.Coloured().find("\x1b[32m") != std::string::npos; };
  terminal.Enter("NO_COLOR= " + Top("job7"));
  ASSERT_TRUE(terminal.Shows("rrrr")) << terminal.Text();
  EXPECT_TRUE(colours());
  terminal.Press("q");
  ASSERT_TRUE(terminal.Hides("rrrr"));
  terminal.Enter(Top("job7"));
  ASSERT_TRUE(terminal.Shows("rrrr")) << terminal.Text();
  EXPECT_FALSE(colours());
  terminal.Press("q");
  ASSERT_TRUE(terminal.Hides("rrrr"));
  EndJob(agent);
}

TEST_F(TopTest, WhereItCannotDrawItSaysSo) {
  Command pipe({MusterPath(), "top", "--rdzv-endpoint=" + port_.endpoint()}, Environment());
  EXPECT_EQ(pipe.Wait(), 2);
  EXPECT_EQ(pipe.err(),
            "muster top: stdin and stdout have to be a terminal; `muster status --watch` does "
            "without\n");
  Tmux terminal = Terminal();
  for (const std::string kind : {"dumb", "nonsense", ""}) {
    terminal.Enter("clear; TERM=" + kind + " " + Top() + "; echo " + kind + "=$?=");
    ASSERT_TRUE(terminal.Shows("\n" + kind + "=2=")) << kind << terminal.Text();
    EXPECT_THAT(terminal.Text(), HasSubstr("muster top: ")) << kind;
    EXPECT_THAT(terminal.Text(), HasSubstr("TERM")) << kind;
  }
  terminal.Enter("clear; " + Top("nosuch") + "; echo nosuch=$?=");
  ASSERT_TRUE(terminal.Shows("\nnosuch=1=")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), HasSubstr("no job 'nosuch' here"));
}

TEST_F(TopTest, ItWaitsForEventsAndForNothingElse) {
  Tmux terminal = Terminal();
  terminal.Enter(Top());
  ASSERT_TRUE(terminal.Shows("there are no jobs")) << terminal.Text();
  const pid_t top = TopProcess();
  ASSERT_GT(top, 0);
  // Its terminal is gone: it exits silently, and above all does not spin.
  terminal.Kill();
  EXPECT_TRUE(WaitUntil([&] { return kill(top, 0) != 0; }));
}

}  // namespace
}  // namespace muster::test
