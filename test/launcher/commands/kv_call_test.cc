#include "launcher/commands/kv_call.h"

#include <chrono>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/flags/completion.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Verb = KvCall::Verb;
using Words = std::vector<std::string>;

const Environment kWorker = {{"MUSTER_RDZV_ENDPOINT", "node0:29400"},
                             {"TORCHELASTIC_RUN_ID", "job7"}};

KvCall Parse(const Words& args) {
  const auto call = ParseKvCall(args, kWorker);
  EXPECT_TRUE(call.ok()) << call.status();
  return call.value_or(KvCall());
}

std::string Problem(const Words& args, const Environment& environment = kWorker) {
  const auto call = ParseKvCall(args, environment);
  EXPECT_FALSE(call.ok());
  return std::string(call.status().message());
}

TEST(KvCallTest, OperandsFindTheirPlaces) {
  const KvCall get = Parse({"get", "k"});
  EXPECT_EQ(get.verb, Verb::kGet);
  EXPECT_EQ(ToString(get.endpoint), "node0:29400");
  EXPECT_EQ(get.run_id, "job7");
  EXPECT_THAT(get.keys, ElementsAre("k"));

  const KvCall set = Parse({"set", "k", "v"});
  EXPECT_EQ(set.verb, Verb::kSet);
  EXPECT_THAT(set.keys, ElementsAre("k"));
  EXPECT_EQ(set.value, "v");
  EXPECT_EQ(Parse({"append", "k", ""}).value, "");

  const KvCall swap = Parse({"compare-set", "k", "old", "new"});
  EXPECT_THAT(swap.keys, ElementsAre("k"));
  EXPECT_EQ(swap.expected, "old");
  EXPECT_EQ(swap.value, "new");

  EXPECT_THAT(Parse({"wait", "a", "b"}).keys, ElementsAre("a", "b"));
  EXPECT_THAT(Parse({"check", "a", "b"}).keys, ElementsAre("a", "b"));
  EXPECT_EQ(Parse({"count"}).verb, Verb::kCount);

  const KvCall barrier = Parse({"barrier", "b", "3"});
  EXPECT_THAT(barrier.keys, ElementsAre("b"));
  EXPECT_EQ(barrier.number, 3);
}

TEST(KvCallTest, ValueThatIsNotGivenComesFromStdin) {
  EXPECT_FALSE(Parse({"set", "k"}).value);
  EXPECT_FALSE(Parse({"append", "k"}).value);
  EXPECT_FALSE(Parse({"compare-set", "k", "old"}).value);
}

TEST(KvCallTest, NumbersHaveSixtyFourBits) {
  EXPECT_EQ(Parse({"add", "k"}).number, 1);
  EXPECT_EQ(Parse({"add", "k", "-9223372036854775808"}).number,
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Problem({"add", "k", "9223372036854775808"}),
            "'9223372036854775808' is not a whole number; see `muster kv --help`");
  EXPECT_EQ(Problem({"barrier", "b", "0"}),
            "'0' is not a whole number of at least 1; see `muster kv --help`");
}

TEST(KvCallTest, TimeoutIsForThoseThatWait) {
  for (const Words& words : {Words{"get", "k"}, Words{"wait", "k"}, Words{"barrier", "b", "2"}}) {
    Words args = words;
    EXPECT_FALSE(Parse(args).timeout);
    args.insert(args.begin(), "--timeout=2");
    EXPECT_EQ(Parse(args).timeout, std::chrono::seconds(2));
  }
  EXPECT_EQ(Problem({"set", "k", "v", "--timeout=2"}),
            "`set` does not wait and takes no --timeout; see `muster kv --help`");
}

TEST(KvCallTest, MistakesAreNamed) {
  EXPECT_EQ(Problem({}), "no command is given; see `muster kv --help`");
  EXPECT_EQ(Problem({"put", "k"}), "unknown command 'put'; see `muster kv --help`");
  EXPECT_EQ(Problem({"get"}), "write `muster kv get KEY`; see `muster kv --help`");
  EXPECT_EQ(Problem({"get", "a", "b"}), "write `muster kv get KEY`; see `muster kv --help`");
  EXPECT_EQ(Problem({"count", "a"}), "write `muster kv count`; see `muster kv --help`");
  EXPECT_THAT(Problem({"get", "k"}, {{"MUSTER_RDZV_ENDPOINT", "h:1"}}),
              HasSubstr("give --rdzv-id=JOB"));
}

TEST(KvCallTest, HelpNeedsNothing) {
  EXPECT_EQ(ParseKvCall({"--help"}, {})->verb, Verb::kHelp);
  EXPECT_EQ(ParseKvCall({"get", "-h"}, {})->verb, Verb::kHelp);
}

TEST(KvCallTest, ShellsCompleteEveryCommandThatHelpTells) {
  const std::string commands = "get set add append compare-set delete check wait count barrier";
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    EXPECT_THAT(CompletionScript(shell), HasSubstr(commands));
  }
  for (const char* operands :
       {"get KEY", "set KEY [VALUE]", "add KEY [NUMBER]", "append KEY [VALUE]",
        "compare-set KEY EXPECTED [VALUE]", "delete KEY", "check KEY...", "wait KEY...", "count",
        "barrier NAME COUNT"}) {
    EXPECT_THAT(KvHelp(), HasSubstr(std::string("\n  ") + operands));
  }
}

}  // namespace
}  // namespace muster::launcher
