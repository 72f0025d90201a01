// "accelerate launch and deepspeed import torch.distributed.run: what do I type instead?" The
// commands of docs/compatibility.md, run as written: each starts as many workers as it says, with
// the variables that it sets.
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// The lines of code in that section.
std::vector<std::string> CommandsOf(const std::string& section) {
  std::vector<std::string> commands;
  std::ifstream page("docs/compatibility.md");
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## " + section;
    if (inside && line.starts_with("    ")) commands.push_back(line.substr(4));
  }
  return commands;
}

// NAME=VALUE of those that `command` sets for its workers.
std::vector<std::string> VariablesOf(const std::string& command) {
  std::vector<std::string> variables;
  const std::regex variable("(?:^| |--export=)([A-Z_]+=[^ ]+)");
  for (std::sregex_iterator found(command.begin(), command.end(), variable), end; found != end;
       ++found) {
    variables.push_back((*found)[1]);
  }
  return variables;
}

class LaunchersTest : public E2eTest {
 protected:
  // In a directory with the files that the commands name, with `muster` in PATH, and an ssh that
  // stays on this machine.
  Command Type(const std::string& command) {
    const std::string script = Write("train.py",
                                     "import os, sys\n"
                                     "wanted = os.environ['WANTED'].split('|')\n"
                                     "lacks = [v for v in wanted if v and "
                                     "os.environ.get(v.split('=')[0]) != v.split('=', 1)[1]]\n"
                                     "os.write(1, '{RANK} of {WORLD_SIZE}'.format(**os.environ)"
                                     ".encode() + repr(lacks or '').encode() + b'\\n')\n");
    std::filesystem::create_directories(Path("pkg"));
    std::filesystem::copy_file(script, Path("pkg/train.py"));
    Write("debugpy.py", "import runpy, sys\nrunpy.run_path(sys.argv[-1])\n");
    Write("hostfile", "127.0.0.1 slots=2\n");
    std::filesystem::create_symlink(std::filesystem::absolute(MusterPath()), Path("muster"));
    Write("ssh",
          "#!/bin/sh\ntest \"$1\" = -G && exit 1\nfor last; do :; done\nexec sh -c \"$last\"\n",
          0755);
    std::string wanted = "WANTED=";
    for (const std::string& variable : VariablesOf(command)) wanted += variable + "|";
    std::vector<std::string> environment = Environment();
    environment.push_back(wanted);
    return Command({"sh", "-c", "cd " + Path("") + " && PATH=" + Path("") + ":$PATH && " + command},
                   environment);
  }
};

TEST_F(LaunchersTest, DocumentedCommandsStartAndSetWhatTheySay) {
  const std::vector<std::string> commands = CommandsOf("Instead of launchers that import torchrun");
  ASSERT_EQ(commands.size(), 7u);
  for (const std::string& command : commands) {
    Command run = Type(command);
    EXPECT_EQ(run.Wait(), 0) << command << "\n" << run.err();
    for (const char* const rank : {"0 of 2''", "1 of 2''"}) {
      EXPECT_TRUE(Contains(run.out(), rank)) << command << "\n" << run.err();
    }
    for (const auto& left : std::filesystem::directory_iterator(Path(""))) {
      std::filesystem::remove_all(left.path());
    }
  }
}

}  // namespace
}  // namespace muster::test
