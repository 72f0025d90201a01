// If the launcher runs on a terminal, so do its workers, and their output appears without delay.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// Runs the rest of its arguments on a terminal of its own, copies its output, and exits with the
// same code.
constexpr char kOnTerminal[] =
    "import pty, os, sys\n"
    "sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

class TerminalE2eTest : public E2eTest {
 protected:
  Command StartOnTerminal(const std::vector<std::string>& flags, const std::string& script) {
    std::vector<std::string> argv =
        Joined({"python3", "-c", kOnTerminal, MusterPath(), "run"}, flags);
    argv.insert(argv.end(), {"--no-python", "python3", "-u", "-c", script});
    return Command(std::move(argv), {mark(), "TMPDIR=" + Path("")});
  }
};

// "Under torchrun my progress bars look like a log file."
TEST_F(TerminalE2eTest, WorkersSeeTheTerminalAsWithoutUs) {
  if (!Succeeds({"python3", "-c", "import pty; pty.openpty()"})) GTEST_SKIP() << "no terminals";
  Command agent = StartOnTerminal(
      {"--standalone"}, "import os; print('seen:', os.isatty(0), os.isatty(1), os.isatty(2))");
  EXPECT_EQ(agent.Wait(), 0) << agent.out();
  EXPECT_TRUE(Contains(agent.out(), "seen: True True True"));
}

TEST_F(TerminalE2eTest, BarOnStderrIsShownWhileItIsDrawn) {
  if (!Succeeds({"python3", "-c", "import pty; pty.openpty()"})) GTEST_SKIP() << "no terminals";
  Command agent = StartOnTerminal({"--standalone"},
                                  "import os, sys, time\n"
                                  "sys.stderr.write('\\r 50%')\n"
                                  "while not os.path.exists('" +
                                      Path("go") +
                                      "'): time.sleep(0.01)\n"
                                      "sys.stderr.write('\\r100%\\n')");
  ASSERT_TRUE(agent.WaitForOut("\r 50%")) << agent.out();
  Write("go", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.out();
  EXPECT_TRUE(Contains(agent.out(), "\r 50%\r100%\r\n"))
      << "one carriage return, the terminal's own";
}

TEST_F(TerminalE2eTest, TeedBarStaysInItsLine) {
  if (!Succeeds({"python3", "-c", "import pty; pty.openpty()"})) GTEST_SKIP() << "no terminals";
  Command agent = StartOnTerminal({"--standalone", "--tee=3", "--log-dir=" + Path("logs")},
                                  "import os, sys, time\n"
                                  "sys.stderr.write('\\r 50%')\n"
                                  "while not os.path.exists('" +
                                      Path("go") +
                                      "'): time.sleep(0.01)\n"
                                      "sys.stderr.write('\\r100%\\n')");
  ASSERT_TRUE(agent.WaitForOut("[default0]: 50%")) << agent.out();
  Write("go", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.out();
  EXPECT_TRUE(Contains(agent.out(), "[default0]:100%\r\n"));
  EXPECT_EQ(agent.out().find("50%\r\n"), std::string::npos) << "it did not become a line";
}

TEST_F(TerminalE2eTest, WithoutATerminalThereIsNone) {
  Command agent = StartMuster({"--standalone", "--no-python", "python3", "-c",
                               "import os; print('seen:', os.isatty(1), os.isatty(2))"});
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "seen: False False"));
}

}  // namespace
}  // namespace muster::test
