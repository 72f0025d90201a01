// Runs the commands of docs/parallelism.md verbatim.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "test/support/command.h"
#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

using Words = std::vector<std::string>;

// The commands on the page.
std::vector<Words> DocumentedCommands() {
  std::vector<Words> commands;
  std::ifstream page("docs/parallelism.md");
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("    muster run ", 0) != 0) continue;
    commands.push_back(absl::StrSplit(absl::StripAsciiWhitespace(line), ' '));
  }
  return commands;
}

// Replaces the programs, the text and the directory of the page by those of the test.
Words Here(const Words& documented, const std::string& directory) {
  Words words;
  for (const std::string& word : documented) {
    words.push_back(word == "muster"         ? "launcher/muster"
                    : word == "muster-train" ? "trainer/muster-train"
                    : word == "corpus.txt"   ? "LICENSE"
                    : word == "ckpt"         ? directory
                                             : word);
  }
  return words;
}

TEST(DocumentedMeshesTest, EachCommandTrains) {
  const test::TempDir dir;
  const std::vector<Words> commands = DocumentedCommands();
  ASSERT_GE(commands.size(), 4u);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    Words words = Here(commands[i], dir.Path("ckpt" + std::to_string(i)));
    const Words few = {"--max-steps",  "2",  "--no-eval", "--context", "32",
                       "--batch-size", "16", "--threads", "1"};
    words.insert(words.end(), few.begin(), few.end());
    SCOPED_TRACE(absl::StrJoin(words, " "));
    test::Command run(words);
    EXPECT_EQ(run.Wait(), 0) << run.out() << run.err();
    EXPECT_NE(run.out().find("mesh pp="), std::string::npos) << run.out();
    EXPECT_NE(run.out().find("(2 steps of 16 windows)"), std::string::npos) << run.out();
  }
}

}  // namespace
}  // namespace muster::trainer
