// Templates as users write them, and the default program.
#include "worker/hang/process_evidence.h"

#include <set>

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace muster::worker {
namespace {

using Words = std::vector<std::string>;

Words ArgvOf(const std::string& text) {
  const auto command = StackCommand::Parse(text);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.ok() ? command->ArgvFor(17) : Words{};
}

std::string Picked(const std::set<std::string>& installed, bool is_python) {
  const auto command = PickStackCommand(
      [&](const std::string& program) { return installed.contains(program); }, is_python);
  return command.has_value() ? command->program() : "none";
}

TEST(StackCommandTest, WordsAndQuotes) {
  EXPECT_EQ(ArgvOf("gdb -p {pid} -batch -ex 'thread apply all bt'"),
            (Words{"gdb", "-p", "17", "-batch", "-ex", "thread apply all bt"}));
  EXPECT_EQ(ArgvOf("  tool\t--process={pid}:{pid}  "), (Words{"tool", "--process=17:17"}));
  EXPECT_EQ(ArgvOf(R"(tool "a \"b\" 'c'" '\' d\ e '' {pid})"),
            (Words{"tool", "a \"b\" 'c'", "\\", "d e", "", "17"}));
}

TEST(StackCommandTest, NothingIsExpandedAsAShellWould) {
  EXPECT_EQ(ArgvOf("tool $HOME;`id` $(id) * > {pid}"),
            (Words{"tool", "$HOME;`id`", "$(id)", "*", ">", "17"}));
}

TEST(StackCommandTest, RefusesInOneSentence) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {"  ", "is empty"},
      {"'' {pid}", "is empty"},
      {"gdb -p", "does not say which process"},
      {"{pid}", "does not say which process"},
      {"gdb 'x {pid}", "has a quote that is not closed"},
      {"gdb {pid} \\", "backslash"}};
  for (const auto& [text, why] : cases) {
    const auto command = StackCommand::Parse(text);
    ASSERT_FALSE(command.ok()) << text;
    EXPECT_TRUE(absl::StrContains(command.status().message(), why)) << command.status();
  }
}

TEST(StackCommandTest, PicksWhatIsInstalled) {
  EXPECT_EQ(Picked({"gdb", "eu-stack", "py-spy"}, /*is_python=*/true), "py-spy");
  EXPECT_EQ(Picked({"gdb", "eu-stack", "py-spy"}, /*is_python=*/false), "gdb");
  EXPECT_EQ(Picked({"eu-stack", "gdb"}, /*is_python=*/true), "gdb");
  EXPECT_EQ(Picked({"eu-stack"}, /*is_python=*/true), "eu-stack");
  EXPECT_EQ(Picked({"py-spy"}, /*is_python=*/false), "none");
  EXPECT_EQ(Picked({}, /*is_python=*/true), "none");
}

TEST(StackCommandTest, LooksAlongPath) {
  EXPECT_TRUE(IsInstalled("sh"));
  EXPECT_FALSE(IsInstalled("no-such-program-anywhere"));
}

}  // namespace
}  // namespace muster::worker
