// A command for several hosts that is typed on a terminal: all workers have a terminal like it,
// which follows its size across two links.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/ssh_hosts.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Runs the command after the first argument on a terminal of 41 rows and 101 columns, and of 29 and
// 77 once the file named by the first argument exists, and copies its output.
constexpr char kOnTerminal[] =
    "import os, pty, select, sys, termios\n"
    "pid, ours = pty.fork()\n"
    "if pid == 0:\n"
    "  termios.tcsetwinsize(1, (41, 101))\n"
    "  os.execvp(sys.argv[2], sys.argv[2:])\n"
    "resized = False\n"
    "while True:\n"
    "  if not resized and os.path.exists(sys.argv[1]):\n"
    "    resized = True\n"
    "    termios.tcsetwinsize(ours, (29, 77))\n"
    "  if not select.select([ours], [], [], 0.02)[0]: continue\n"
    "  try: piece = os.read(ours, 65536)\n"
    "  except OSError: break\n"
    "  os.write(1, piece)\n"
    "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";

// Prints what it sees, and stays until the terminal gets smaller.
constexpr char kLooks[] =
    "exec 3>&1\n"
    "[ -t 1 ] && [ -t 2 ] && echo worker $RANK has a $TERM of $(stty size <&3)\n"
    "until [ \"$(stty size <&3)\" = '29 77' ]; do sleep 0.05; done\n"
    "printf '50%%\\r100%%\\n'\n"
    "echo worker $RANK has seen it on stdout\n"
    "until [ \"$(stty size <&2)\" = '29 77' ]; do sleep 0.05; done\n"
    "echo worker $RANK has seen it on stderr >&2\n";

// "With --hosts my progress bars are 80 columns wide, whatever my terminal is."
TEST_F(SshHostsTest, WorkersHaveTheTerminalOfTheOneWhoTypes) {
  ASSERT_NO_FATAL_FAILURE(MakeHosts(2));
  if (IsSkipped()) return;
  const std::string smaller = Path("smaller");
  Command run =
      StartWhereTyped({"env", "TERM=vt220", "python3", "-c", kOnTerminal, smaller,
                       std::filesystem::absolute(MusterPath()), "run", "--hosts=node[0-1]:2",
                       "--fanout=1", "--no-python", "sh", "-c", kLooks});
  for (int rank = 0; rank < 4; ++rank) {
    const std::string worker = "worker " + std::to_string(rank);
    ASSERT_TRUE(run.WaitForOut(worker + " has a vt220 of 41 101\r\n")) << run.out();
  }
  Write("smaller", "");
  EXPECT_EQ(run.Wait(), 0) << run.out();
  for (int rank = 0; rank < 4; ++rank) {
    const std::string worker = "worker " + std::to_string(rank);
    EXPECT_THAT(run.out(), HasSubstr(worker + " has seen it on stdout\r\n"));
    EXPECT_THAT(run.out(), HasSubstr(worker + " has seen it on stderr\r\n"));
    // Lines of several hosts stay whole.
    const std::string prefix = "[default" + std::to_string(rank) + "]:";
    EXPECT_THAT(run.out(), HasSubstr(prefix + "50%\r\n"));
    EXPECT_THAT(run.out(), HasSubstr(prefix + "100%\r\n"));
  }
}

TEST_F(SshHostsTest, WithoutATerminalWorkersHaveNone) {
  ASSERT_NO_FATAL_FAILURE(MakeHosts(1));
  if (IsSkipped()) return;
  Command run = StartOnHosts({"--hosts=node0"}, "[ -t 1 ] || [ -t 2 ] || echo there is none");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("there is none"));
  EXPECT_THAT(run.out(), Not(HasSubstr("\r")));
}

}  // namespace
}  // namespace muster::test
