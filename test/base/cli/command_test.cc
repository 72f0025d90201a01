// A command line of each kind, and what becomes of it: a line for what is typed, one for the
// answer.
#include "base/cli/command.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/cli/readers.h"

namespace muster::base {
namespace {

struct ToolArgs : CommandArgs {
  bool json = false;
  std::string job = "none";
  std::chrono::milliseconds wait{0};
  std::vector<std::string> variables;
  int node = -1;
};

Problem SetNode(absl::string_view value, ToolArgs& args) {
  args.node = static_cast<int>(value.size());
  return std::nullopt;
}

constexpr Flag kToolFlags[] = {
    {.name = "--json",
     .short_name = "-j",
     .kind = Flag::Kind::kSwitch,
     .help = "Print JSON.",
     .set = Store<ReadSwitch, &ToolArgs::json>},
    {.name = "--the-job",
     .short_name = "-jb",
     .value_name = "JOB",
     .help = "The job, of which the help text has more to say than a line of it can hold, which is "
             "why it goes on in the next one.",
     .default_text = "none",
     .variables = "TOOL_JOB|OLD_JOB",
     .set = Store<ReadText, &ToolArgs::job>},
    {.name = "--wait",
     .verbs = "get|wait",
     .local_only = true,
     .value_name = "SECONDS",
     .help = "How long to wait.",
     .set = Store<ReadSeconds, &ToolArgs::wait>},
    {.name = "--env",
     .value_name = "NAME=VALUE",
     .help = "A variable.",
     .set = Append<ReadNonEmpty, &ToolArgs::variables>},
    {.name = "--node", .value_name = "N", .set = Apply<SetNode>},
};
constexpr Verb kToolVerbs[] = {
    {"get", "KEY", "Print a value."}, {"set", "KEY [VALUE]", "Write one."}, {"wait", "KEY...", ""}};

Command Tool(absl::string_view operands = "FILE [FILE]") {
  return {.name = "tool",
          .operands = operands,
          .about = "Does what a tool does.\n",
          .end = "Exit codes: 0 done.\n",
          .flags = WithHelp({kToolFlags})};
}

Command WithVerbs() {
  Command command = Tool("");
  command.verbs = kToolVerbs;
  return command;
}

// The answer to `line`: what was understood, or the sentence.
std::string Read(const Command& command, const std::string& line,
                 const std::map<std::string, std::string>& environment = {}) {
  ToolArgs args;
  const absl::Status status = ReadCommandLine(
      command, absl::StrSplit(line, ' ', absl::SkipEmpty()),
      [&](const std::string& name) {
        const auto found = environment.find(name);
        return found == environment.end() ? "" : found->second;
      },
      args);
  if (!status.ok()) return std::string(status.message());
  if (args.help) return "help";
  return absl::StrCat(args.verb, args.json ? "json " : "", "job=", args.job,
                      " wait=", args.wait.count(), " [", absl::StrJoin(args.operands, " "), "]");
}

using Transcript = std::vector<std::pair<const char*, const char*>>;

void Check(const Command& command, const Transcript& transcript) {
  for (const auto& [line, answer] : transcript) EXPECT_EQ(Read(command, line), answer) << line;
}

TEST(CommandTest, FlagsAndOperandsComeInAnyOrder) {
  Check(Tool(), {
                    {"a --json", "json job=none wait=0 [a]"},
                    {"--json a b", "json job=none wait=0 [a b]"},
                    {"a --the_job=x", "job=x wait=0 [a]"},
                    {"a --the-job x --the-job=y", "job=y wait=0 [a]"},
                    {"a --the=", "job= wait=0 [a]"},
                    {"a -jbx", "job=x wait=0 [a]"},
                    {"a -jb=x", "job=x wait=0 [a]"},
                    {"a --wai=0.5", "job=none wait=500 [a]"},
                    {"-5 -", "job=none wait=0 [-5 -]"},
                    {"a -- --json", "job=none wait=0 [a --json]"},
                    {"--help", "help"},
                    {"a b c -h", "help"},
                });
}

TEST(CommandTest, EachMistakeIsOneSentence) {
  Check(Tool(),
        {
            {"", "write `muster tool FILE [FILE]`; see `muster tool --help`"},
            {"a b c", "unexpected argument 'c'; see `muster tool --help`"},
            {"a --jsno", "unknown flag '--jsno'; did you mean --json?"},
            {"a --xyz=1", "unknown flag '--xyz'; see `muster tool --help`"},
            {"a -json", "unknown flag '-json'; did you mean --json?"},
            {"a --json=1", "'--json=1' gives a value to --json, which takes none; write it alone"},
            {"a --wait", "'--wait' needs a value; write --wait=SECONDS"},
            {"a --wait --json", "'--wait' needs a value; write --wait=SECONDS"},
            {"a --wait x", "--wait x is not a number of seconds; give 0 or more"},
            {"a --env=", "--env= is empty; was a variable not set?"},
        });
}

TEST(CommandTest, VerbsHaveOperandsOfTheirOwn) {
  Check(WithVerbs(),
        {
            {"get k --wait=1", "getjob=none wait=1000 [k]"},
            {"set k -- --v", "setjob=none wait=0 [k --v]"},
            {"wait a b c", "waitjob=none wait=0 [a b c]"},
            {"", "no command is given; see `muster tool --help`"},
            {"gte k", "unknown command 'gte'; did you mean `muster tool get`?"},
            {"put k", "unknown command 'put'; see `muster tool --help`"},
            {"get", "write `muster tool get KEY`; see `muster tool --help`"},
            {"set a b c", "write `muster tool set KEY [VALUE]`; see `muster tool --help`"},
            {"set k --wait=1", "`muster tool set` takes no --wait; see `muster tool --help`"},
        });
}

TEST(CommandTest, WhatFollowsAScriptIsTheScripts) {
  Command run = Tool();
  run.order = Command::Order::kScript;
  Check(run, {
                 {"--json a --json", "json job=none wait=0 [a --json]"},
                 {"-- --json", "job=none wait=0 [--json]"},
                 {"-5", "unknown flag '-5'; see `muster tool --help`"},
             });
  Command foreign = Tool();
  foreign.order = Command::Order::kForeign;
  Check(foreign, {
                     {"--json --wait-all -- a", "json job=none wait=0 [--wait-all -- a]"},
                     {"--js -- a", "job=none wait=0 [--js -- a]"},
                 });
}

TEST(CommandTest, VariablesAreLookedAtInOrder) {
  EXPECT_EQ(Read(Tool(), "a", {{"OLD_JOB", "old"}}), "job=old wait=0 [a]");
  EXPECT_EQ(Read(Tool(), "a", {{"OLD_JOB", "old"}, {"TOOL_JOB", "new"}}), "job=new wait=0 [a]");
  EXPECT_EQ(Read(Tool(), "a --the-job=", {{"OLD_JOB", "old"}}), "job= wait=0 [a]");
  Command run = Tool();
  run.variable_prefix = "PET_";
  EXPECT_EQ(Read(run, "a", {{"PET_THE_JOB", "pet"}, {"TOOL_JOB", "new"}}), "job=pet wait=0 [a]");
  EXPECT_EQ(Read(run, "a", {{"PET_WAIT", "x"}}),
            "environment variable PET_WAIT=x is not a number of seconds; give 0 or more");
  EXPECT_EQ(Read(run, "--help", {{"PET_WAIT", "x"}}), "help");
}

TEST(CommandTest, HelpFollowsFromTheRows) {
  EXPECT_EQ(HelpText(Tool()), R"(Usage: muster tool [flags] FILE [FILE]

Does what a tool does.

  -j, --json          Print JSON.
  -jb, --the-job=JOB  The job, of which the help text has more to say than a line of it can hold,
                      which is why it goes on in the next one. [default: none]
  --wait=SECONDS      How long to wait.
  --env=NAME=VALUE    A variable.
  -h, --help          Print this text.

Exit codes: 0 done.
)");
  const std::string verbs = HelpText(WithVerbs());
  EXPECT_TRUE(verbs.starts_with(R"(Usage: muster tool COMMAND [flags]

Does what a tool does.

  get KEY             Print a value.
  set KEY [VALUE]     Write one.
)")) << verbs;
}

}  // namespace
}  // namespace muster::base
