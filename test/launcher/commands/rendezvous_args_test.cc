#include "launcher/commands/rendezvous_args.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Words = std::vector<std::string>;

const Environment kWorker = {{"MUSTER_RDZV_ENDPOINT", "node0:29400"},
                             {"TORCHELASTIC_RUN_ID", "job7"}};

RendezvousArgs Parse(const Words& args, const Environment& environment = {}) {
  const auto parsed = ParseRendezvousArgs(args, {.json = true, .timeout = true}, environment);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.value_or(RendezvousArgs());
}

std::string Problem(const Words& args, const Environment& environment = kWorker,
                    const RendezvousArgsTaken& taken = {.json = true, .timeout = true}) {
  const auto parsed = ParseRendezvousArgs(args, taken, environment);
  EXPECT_FALSE(parsed.ok());
  return std::string(parsed.status().message());
}

TEST(RendezvousArgsTest, FlagsAreReadInEitherSpelling) {
  for (const Words& args :
       {Words{"--rdzv-endpoint", "h:1", "--rdzv-id", "j", "--json", "--timeout", "0.5"},
        Words{"--rdzv_endpoint=h:1", "--rdzv_id=j", "--json", "--timeout=0.5"}}) {
    const RendezvousArgs parsed = Parse(args);
    EXPECT_EQ(ToString(parsed.endpoint), "h:1");
    EXPECT_EQ(parsed.run_id, "j");
    EXPECT_TRUE(parsed.json);
    EXPECT_EQ(parsed.timeout, std::chrono::milliseconds(500));
    EXPECT_THAT(parsed.operands, ElementsAre());
  }
}

TEST(RendezvousArgsTest, OperandsAreKeptAsTheyAre) {
  EXPECT_THAT(Parse({"set", "--json", "[a,b]", ""}, kWorker).operands,
              ElementsAre("set", "[a,b]", ""));
  EXPECT_THAT(Parse({"add", "k", "-5", "-", "--", "--json", "--"}, kWorker).operands,
              ElementsAre("add", "k", "-5", "-", "--json", "--"));
}

TEST(RendezvousArgsTest, JobMayBeNamedWithoutItsFlag) {
  const RendezvousArgsTaken taken = {.watch = true, .job = true};
  for (const Words& args : {Words{"job8", "--watch"}, Words{"--watch", "--rdzv-id=job8"},
                            Words{"--watch", "--rdzv-id=job8", "job8"}}) {
    const auto parsed = ParseRendezvousArgs(args, taken, kWorker);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->run_id, "job8");
    EXPECT_TRUE(parsed->watch);
    EXPECT_THAT(parsed->operands, ElementsAre());
  }
  EXPECT_THAT(Problem({"a", "b"}, kWorker, taken), HasSubstr("unexpected argument 'b'"));
  EXPECT_THAT(Problem({"a", "--rdzv-id=b"}, kWorker, taken), HasSubstr("two jobs are named"));
  EXPECT_THAT(Problem({"../a"}, kWorker, taken), HasSubstr("run id"));
}

TEST(RendezvousArgsTest, WorkerNeedsNoFlags) {
  const RendezvousArgs parsed = Parse({}, kWorker);
  EXPECT_EQ(ToString(parsed.endpoint), "node0:29400");
  EXPECT_EQ(parsed.run_id, "job7");
  EXPECT_FALSE(parsed.timeout);
}

TEST(RendezvousArgsTest, FlagsComeBeforeTheWorkersVariablesAndThoseBeforePet) {
  Environment environment = {{"PET_RDZV_ENDPOINT", "pet"}, {"PET_RDZV_ID", "p"}};
  EXPECT_EQ(ToString(Parse({}, environment).endpoint), "pet:29400");
  EXPECT_EQ(Parse({}, environment).run_id, "p");
  environment.insert(kWorker.begin(), kWorker.end());
  EXPECT_EQ(Parse({}, environment).run_id, "job7");
  EXPECT_EQ(Parse({"--rdzv-id=x"}, environment).run_id, "x");
  EXPECT_EQ(Parse({"--rdzv-id="}, environment).run_id, "") << "no job in particular";
}

TEST(RendezvousArgsTest, HelpIsThereWithoutAnythingElse) {
  EXPECT_TRUE(Parse({"--help"}).help);
  EXPECT_TRUE(Parse({"get", "-h"}, {{"MUSTER_RDZV_ENDPOINT", "::"}}).help);
}

TEST(RendezvousArgsTest, EachMistakeIsOneSentence) {
  EXPECT_THAT(Problem({}, {}), HasSubstr("give --rdzv-endpoint=HOST:PORT"));
  EXPECT_THAT(Problem({"--rdzv-endpoint=h:x"}), HasSubstr("--rdzv-endpoint=h:x has a bad port"));
  EXPECT_EQ(Problem({"--rdzv-endpoint=h:0"}),
            "--rdzv-endpoint=h:0 has port 0, which nobody can connect to");
  EXPECT_THAT(Problem({}, {{"MUSTER_RDZV_ENDPOINT", "::1"}}),
              HasSubstr("environment variable MUSTER_RDZV_ENDPOINT=::1 has a bad host"));
  EXPECT_THAT(Problem({"--rdzv-id=../x"}), HasSubstr("must start with a letter or a digit"));
  EXPECT_EQ(Problem({"--timeout=-1"}),
            "--timeout=-1 is not a number of seconds, such as 30 or 0.5");
  EXPECT_EQ(Problem({"--rdzv-id"}), "'--rdzv-id' needs a value");
  EXPECT_THAT(Problem({"--no-such=1"}), HasSubstr("unknown flag '--no-such'"));
  EXPECT_THAT(Problem({"--json=1"}), HasSubstr("unknown flag '--json'"));
  EXPECT_THAT(Problem({"--json"}, kWorker, {.timeout = true}), HasSubstr("unknown flag '--json'"));
  EXPECT_THAT(Problem({"--timeout=1"}, kWorker, {.json = true}),
              HasSubstr("unknown flag '--timeout'"));
}

}  // namespace
}  // namespace muster::launcher
