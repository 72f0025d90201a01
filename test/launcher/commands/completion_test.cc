// Tests the completion scripts in the shells themselves: bash completes real command lines; zsh and
// fish, if installed, parse theirs.
#include "base/cli/command.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/commands/commands.h"
#include "test/support/command.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using base::Flag;
using base::Shell;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

// What bash offers for the last of `words`, which are split as readline splits them: "--tee=3" is
// three. In a directory with train.py, train data/ and notes.txt.
class BashCompletionTest : public testing::Test {
 protected:
  BashCompletionTest() {
    temp_.Write("train.py", "");
    temp_.Write("notes.txt", "");
    std::filesystem::create_directory(temp_.path() + "/train data");
    scripts_.Write("completion", base::CompletionScript(Shell::kBash, Commands()));
  }

  Words Complete(const Words& words) {
    Words argv = {"bash",
                  "--norc",
                  "-c",
                  "cd \"$1\" && source \"$2\" && shift 2 && COMP_WORDS=(\"$@\") && "
                  "COMP_CWORD=$(($# - 1)) && { _muster; printf '%s\\n' \"${COMPREPLY[@]}\"; }",
                  "bash",
                  temp_.path(),
                  scripts_.path() + "/completion"};
    argv.insert(argv.end(), words.begin(), words.end());
    test::Command bash(argv);
    EXPECT_EQ(bash.Wait(), 0) << absl::StrJoin(words, " ") << ": " << bash.err();
    EXPECT_EQ(bash.err(), "");
    return absl::StrSplit(bash.out(), '\n', absl::SkipEmpty());
  }

  const test::TempDir temp_;
  const test::TempDir scripts_;
};

TEST_F(BashCompletionTest, EveryCommandVerbAndFlagIsOffered) {
  const Words commands = Complete({"/opt/bin/muster", ""});
  EXPECT_THAT(Complete({"muster", "help", "s"}), ElementsAre("stop", "status", "store", "sbatch"));
  for (const base::Command& command : Commands()) {
    const std::string word(command.name);
    EXPECT_THAT(commands, Contains(word));
    const Words flags = Complete({"muster", word, "-"});
    for (const Flag& flag : command.flags) {
      const bool is_its = flag.only_for.empty() || flag.only_for == command.name;
      const std::string name(flag.name);
      if (is_its && !flag.help.empty()) {
        EXPECT_THAT(flags, Contains(name)) << word;
      } else {
        EXPECT_THAT(flags, Not(Contains(name))) << word;
      }
    }
    const Words words = Complete({"muster", word, ""});
    for (const base::Verb& verb : command.verbs)
      EXPECT_THAT(words, Contains(std::string(verb.name)));
  }
  EXPECT_EQ(Complete({"torchrun", "-"}), Complete({"muster", "run", "-"}));
}

TEST_F(BashCompletionTest, OperandsAndValuesAreThoseOfTheCommand) {
  EXPECT_THAT(Complete({"/opt/bin/muster", "r"}), ElementsAre("run", "replay"));
  EXPECT_THAT(Complete({"muster", "status", "--rdzv_i"}), ElementsAre("--rdzv-id"));
  EXPECT_THAT(Complete({"muster", "kv", "a"}), ElementsAre("add", "append"));
  EXPECT_THAT(Complete({"muster", "kv", "wait", "--ti"}), ElementsAre("--timeout"));
  EXPECT_THAT(Complete({"muster", "token", "r"}), ElementsAre("rotate"));
  EXPECT_THAT(Complete({"muster", "token", "rotate", "no"}), ElementsAre("notes.txt"));
  EXPECT_THAT(Complete({"muster", "doctor", ""}), ElementsAre("train data"));
  EXPECT_THAT(Complete({"muster", "replay", "a", "no"}), ElementsAre("notes.txt"));
  EXPECT_THAT(Complete({"muster", "replay", "--html", "no"}), ElementsAre("notes.txt"));
  EXPECT_THAT(Complete({"muster", "store", "--legacy-dialect", "=", "1"}), ElementsAre("1.x"));
  EXPECT_THAT(Complete({"muster", "stop", "--timeout", ""}), IsEmpty());
}

TEST_F(BashCompletionTest, FlagsAreFoundByTheirBeginning) {
  EXPECT_THAT(Complete({"torchrun", "--nproc"}), ElementsAre("--nproc-per-node"));
  EXPECT_THAT(Complete({"muster", "run", "--nproc_"}), ElementsAre("--nproc-per-node"));
  EXPECT_THAT(Complete({"muster", "run", "--standalone", "--max-r"}),
              ElementsAre("--max-restarts"));
  EXPECT_THAT(Complete({"muster", "run", "--rdzv-endpoint", "=", "h", ":", "29400", "--max-r"}),
              ElementsAre("--max-restarts"));
}

TEST_F(BashCompletionTest, ChoicesAreOffered) {
  for (const Words& words :
       {Words{"muster", "run", "--nproc-per-node", ""}, Words{"torchrun", "--nproc_per_node", ""},
        Words{"torchrun", "--nproc-per-node", "="}}) {
    EXPECT_THAT(Complete(words), ElementsAre("cpu", "gpu", "auto")) << absl::StrJoin(words, " ");
  }
  EXPECT_THAT(Complete({"torchrun", "--nproc-per-node", "=", "g"}), ElementsAre("gpu"));
  EXPECT_THAT(Complete({"torchrun", "--exit-code", "w"}), ElementsAre("worker"));
  EXPECT_THAT(Complete({"torchrun", "--log-dir", ""}), ElementsAre("train data"));
  EXPECT_THAT(Complete({"torchrun", "--nnodes", ""}), IsEmpty());
}

TEST_F(BashCompletionTest, FilesAreTheScriptAndItsArguments) {
  EXPECT_THAT(Complete({"torchrun", "tr"}), UnorderedElementsAre("train.py", "train data"));
  EXPECT_THAT(Complete({"torchrun", "--nnodes", "2", "no"}), ElementsAre("notes.txt"));
  EXPECT_THAT(Complete({"muster", "run", "train.py", "--max-r"}), IsEmpty());
  EXPECT_THAT(Complete({"muster", "run", "train.py", "--config", "no"}), ElementsAre("notes.txt"));
  EXPECT_THAT(Complete({"muster", "run", "--", "train.py", "no"}), ElementsAre("notes.txt"));
  EXPECT_THAT(Complete({"muster", "run", "-r", "3", "-t3", "no"}), ElementsAre("notes.txt"));
}

// Whether `shell` is there to be asked.
bool HasShell(const std::string& shell) {
  return test::Command({shell, "-c", "true"}).Wait() == 0;
}

TEST(CompletionTest, ZshReadsItsScript) {
  if (!HasShell("zsh")) GTEST_SKIP() << "zsh is not installed";
  const test::TempDir temp;
  test::Command zsh(
      {"zsh", "-n", temp.Write("completion", base::CompletionScript(Shell::kZsh, Commands()))});
  EXPECT_EQ(zsh.Wait(), 0) << zsh.err();
}

TEST(CompletionTest, FishReadsItsScript) {
  if (!HasShell("fish")) GTEST_SKIP() << "fish is not installed";
  const test::TempDir temp;
  test::Command fish(
      {"fish", "-n", temp.Write("completion", base::CompletionScript(Shell::kFish, Commands()))});
  EXPECT_EQ(fish.Wait(), 0) << fish.err();
}

TEST(CompletionTest, EveryFlagIsInEveryScript) {
  const std::string zsh = base::CompletionScript(Shell::kZsh, Commands());
  const std::string fish = base::CompletionScript(Shell::kFish, Commands());
  for (const base::Command& command : Commands()) {
    EXPECT_THAT(zsh, HasSubstr(absl::StrCat("\n    ", command.name, ") _arguments")));
    for (const Flag& flag : command.flags) {
      const std::string name(flag.name);
      if (flag.help.empty() || (!flag.only_for.empty() && flag.only_for != command.name)) continue;
      EXPECT_THAT(zsh, HasSubstr("'" + name)) << command.name;
      EXPECT_THAT(fish, HasSubstr(absl::StrCat(" ", command.name, "' -l ", name.substr(2), " ")));
    }
  }
}

TEST(CompletionTest, LiteralWordsOfAValueAreItsChoices) {
  const auto choices = [](absl::string_view value_name) {
    return base::ChoicesOf({.name = "--x", .value_name = value_name});
  };
  EXPECT_THAT(choices("N|cpu|gpu|auto"), ElementsAre("cpu", "gpu", "auto"));
  EXPECT_THAT(choices("node|core-complex"), ElementsAre("node", "core-complex"));
  EXPECT_THAT(choices("N|MIN:MAX"), IsEmpty());
  EXPECT_THAT(choices("DIR"), IsEmpty());
  EXPECT_THAT(choices("word"), IsEmpty());
}

}  // namespace
}  // namespace muster::launcher
