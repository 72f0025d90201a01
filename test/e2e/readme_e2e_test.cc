// README's first commands, run as written: on one node, and on two by ssh.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/ssh_hosts.h"

namespace muster::test {
namespace {

// The lines of code in a section that begin with `muster run`.
std::vector<std::string> CommandsOf(const std::string& section) {
  std::vector<std::string> commands;
  std::ifstream readme("README.md");
  bool inside = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("## ")) inside = line == "## " + section;
    if (inside && line.starts_with("    muster run ")) commands.push_back(line.substr(4));
  }
  return commands;
}

class ReadmeTest : public SshHostsTest {
 protected:
  // In a directory with train.py, and with `muster` in PATH.
  Command Type(const std::string& command) {
    std::filesystem::create_symlink(std::filesystem::absolute(MusterPath()), Path("muster"));
    // In a single write, so that two workers' lines do not mix.
    Write("train.py",
          "import os\n"
          "os.write(1, 'rank {RANK} of {WORLD_SIZE}\\n'.format(**os.environ).encode())\n");
    return StartWhereTyped(
        {"sh", "-c", "cd " + Path("") + " && PATH=" + Path("") + ":$PATH && " + command});
  }

  static std::vector<std::string> Sorted(std::vector<std::string> lines) {
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

TEST_F(ReadmeTest, OneNodeStartsWithOneCommand) {
  const std::vector<std::string> commands = CommandsOf("Install");
  ASSERT_EQ(commands.size(), 2u);
  ASSERT_NO_FATAL_FAILURE(MakeHosts(1));
  if (IsSkipped()) return;
  Command run = Type(commands[0]);
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(Sorted(Lines(run.out())), (std::vector<std::string>{"rank 0 of 2", "rank 1 of 2"}));
}

TEST_F(ReadmeTest, TwoNodesStartWithOneCommandBySsh) {
  const std::vector<std::string> commands = CommandsOf("Install");
  ASSERT_EQ(commands.size(), 2u);
  ASSERT_NO_FATAL_FAILURE(MakeHosts(2));
  if (IsSkipped()) return;
  Command run = Type(commands[1]);
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(Sorted(Lines(run.out())),
            (std::vector<std::string>{"[default0]:rank 0 of 4", "[default1]:rank 1 of 4",
                                      "[default2]:rank 2 of 4", "[default3]:rank 3 of 4"}));
}

}  // namespace
}  // namespace muster::test
