// What commands understand: a line for what is typed, one for what is made of it, or the sentence
// that is answered.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "launcher/cli/command_run.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/kv.h"
#include "launcher/commands/logs.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

const Environment kWorker = {{"MUSTER_RDZV_ENDPOINT", "node0:29400"},
                             {"TORCHELASTIC_RUN_ID", "job7"}};

// Arguments are apart by blanks; "" is an empty one.
std::vector<std::string> SplitWords(absl::string_view line) {
  std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  for (std::string& word : words) {
    if (word == "\"\"") word.clear();
  }
  return words;
}

template <typename Args>
absl::StatusOr<Args> Read(const base::Command& command, absl::string_view line,
                          const Environment& environment) {
  return ReadArgs<Args>(command, SplitWords(line),
                        [&](const std::string& name) { return GetOr(environment, name, ""); });
}

// A line, and the answer to it, or the beginning of it.
using Transcript = std::vector<std::pair<const char*, const char*>>;

void Compare(const Transcript& transcript, std::string (*answer_to)(absl::string_view)) {
  for (const auto& [line, answer] : transcript) {
    EXPECT_THAT(answer_to(line), testing::StartsWith(answer)) << line;
  }
}

std::string TopAnswer(absl::string_view line, const Environment& environment) {
  const auto args = Read<RendezvousArgs>(TopCommand(), line, environment);
  if (!args.ok()) return std::string(args.status().message());
  if (args->help) return "help";
  return absl::StrCat(ToString(args->endpoint), " ", args->run_id);
}

TEST(CommandLinesTest, RendezvousAndJobAreNamedInManyWays) {
  Compare({{"", "node0:29400 job7"},
           {"--rdzv-endpoint h:1 --rdzv-id j", "h:1 j"},
           {"--rdzv_endpoint=h:1 --rdzv_id=j", "h:1 j"},
           {"job8", "node0:29400 job8"},
           {"--rdzv-id=job8 job8", "node0:29400 job8"},
           {"--help", "help"},
           {"a b", "unexpected argument 'b'"},
           {"a --rdzv-id=b", "two jobs are named, 'a' and --rdzv-id=b; name one"},
           {"a\nb", "run id \"a\\nb\" has a control character"},
           {"--rdzv-endpoint=h:x", "--rdzv-endpoint=h:x has a bad port"},
           {"--rdzv-endpoint=h:0", "--rdzv-endpoint=h:0 has port 0, which cannot be connected to"},
           {"--rdzv-endpoint=0.0.0.0:29400",
            "--rdzv-endpoint=0.0.0.0:29400 names 0.0.0.0, which is the wildcard address, which "
            "cannot be connected to; give the name or one address of the machine "
            "where the rendezvous is"},
           {"--rdzv-id", "'--rdzv-id' needs a value; write --rdzv-id=JOB"},
           {"--no-such=1", "unknown flag '--no-such'"},
           {"--json", "unknown flag '--json'"}},
          [](absl::string_view line) { return TopAnswer(line, kWorker); });
}

TEST(CommandLinesTest, FlagsComeBeforeTheWorkersVariablesAndThoseBeforePet) {
  Environment environment = {{"PET_RDZV_ENDPOINT", "pet"}, {"PET_RDZV_ID", "p"}};
  EXPECT_EQ(TopAnswer("", environment), "pet:29400 p");
  environment.insert(kWorker.begin(), kWorker.end());
  EXPECT_EQ(TopAnswer("", environment), "node0:29400 job7");
  EXPECT_EQ(TopAnswer("--rdzv-id=", environment), "node0:29400 ") << "no job in particular";
  EXPECT_THAT(TopAnswer("", {}), HasSubstr("give --rdzv-endpoint=HOST:PORT"));
  EXPECT_THAT(TopAnswer("", {{"MUSTER_RDZV_ENDPOINT", "::1"}}),
              HasSubstr("environment variable MUSTER_RDZV_ENDPOINT=::1 has a bad host"));
  EXPECT_EQ(TopAnswer("-h", {{"MUSTER_RDZV_ENDPOINT", "::"}}), "help");
}

std::string KvAnswer(absl::string_view line, const Environment& environment) {
  const auto args = Read<KvArgs>(KvCommand(), line, environment);
  if (!args.ok()) return std::string(args.status().message());
  if (args->help) return "help";
  return absl::StrCat(args->verb, " [", absl::StrJoin(args->operands, " "), "] ",
                      args->value ? absl::StrCat("'", *args->value, "'") : "stdin", " ",
                      args->expected, " ", args->number, " ",
                      args->timeout ? absl::StrCat(args->timeout->count(), " ms") : "");
}

TEST(CommandLinesTest, KvPutsOperandsInTheirPlaces) {
  Compare({{"get k", "get [k] stdin"},
           {"set k v", "set [k] 'v'"},
           {"set k", "set [k] stdin"},
           {"set k -- --json", "set [k] '--json'"},
           {"append k \"\"", "append [k] ''"},
           {"append k", "append [k] stdin"},
           {"compare-set k old new", "compare-set [k] 'new' old"},
           {"compare-set k old", "compare-set [k] stdin old"},
           {"wait a b", "wait [a b]"},
           {"check a b", "check [a b]"},
           {"count", "count []"},
           {"barrier b 3", "barrier [b] stdin  3"},
           {"add k", "add [k] stdin  1"},
           {"add k -9223372036854775808", "add [k] stdin  -9223372036854775808"},
           {"get k --timeout=2", "get [k] stdin  1 2000 ms"},
           {"--timeout 0.5 wait k", "wait [k] stdin  1 500 ms"},
           {"barrier b 2 --timeout=2", "barrier [b] stdin  2 2000 ms"},
           {"get -h", "help"},
           {"add k 9223372036854775808",
            "'9223372036854775808' is not a whole number; see `muster kv --help`"},
           {"barrier b 0", "'0' is not a whole number of at least 1; see `muster kv --help`"},
           {"set k v --timeout=2", "`muster kv set` takes no --timeout; see `muster kv --help`"},
           {"get k --timeout=-1", "--timeout=-1 is not a number of seconds; give 0 or more"},
           {"", "no command is given; see `muster kv --help`"},
           {"put k", "unknown command 'put'; see `muster kv --help`"},
           {"gte k", "unknown command 'gte'; did you mean `muster kv get`?"},
           {"get", "write `muster kv get KEY`; see `muster kv --help`"},
           {"get a b", "write `muster kv get KEY`; see `muster kv --help`"},
           {"count a", "write `muster kv count`; see `muster kv --help`"},
           {"set k --xyz",
            "unknown flag '--xyz'; put -- in front of a key or value that begins with '-'"}},
          [](absl::string_view line) { return KvAnswer(line, kWorker); });
  EXPECT_THAT(KvAnswer("get k", {{"MUSTER_RDZV_ENDPOINT", "h:1"}}),
              HasSubstr("give --rdzv-id=JOB"));
}

absl::StatusOr<LogsArgs> Logs(absl::string_view line) {
  return Read<LogsArgs>(LogsCommand(), line, {{"MUSTER_RDZV_ENDPOINT", "h:1"}});
}

TEST(CommandLinesTest, LogsOfTheLastRoundByDefault) {
  const auto args = Logs("job");
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->request, rendezvous::LogRequest{.run_id = "job"});
  EXPECT_FALSE(args->one_rank());
}

TEST(CommandLinesTest, EachFlagOfLogsHasItsPart) {
  const auto args = Logs("-f --rank 0-3,7 --since=10m --tail=5 --stderr --round 2 job");
  ASSERT_TRUE(args.ok()) << args.status();
  const rendezvous::LogRequest& request = args->request;
  EXPECT_THAT(request.ranks,
              testing::ElementsAre(rendezvous::RankRange{0, 3}, rendezvous::RankRange{7, 7}));
  EXPECT_TRUE(request.extent.follow);
  EXPECT_EQ(request.extent.since, std::chrono::minutes(10));
  EXPECT_EQ(request.extent.tail, 5);
  EXPECT_FALSE(request.extent.with_stdout);
  EXPECT_TRUE(request.extent.with_stderr);
  EXPECT_EQ(request.round, 2);
  EXPECT_TRUE(Logs("job --rank=4")->one_rank());
  EXPECT_TRUE(Logs("job --previous")->request.previous);
  Compare({{"", "no job is named; `muster status` lists those that are there"},
           {"a b", "unexpected argument 'b'; see `muster logs --help`"},
           {"a --rank=3-1", "--rank=3-1 is not a list of ranks"},
           {"a --rank=x", "--rank=x is not a list of ranks"},
           {"a --tail=-1", "--tail=-1 is not valid; give a whole number from 0"},
           {"a --round=1 --previous", "--round and --previous contradict each other"},
           {"a --since=soon", "--since=soon is neither a duration, such as 90"}},
          [](absl::string_view line) { return std::string(Logs(line).status().message()); });
}

TEST(CommandLinesTest, TimesAreReadAsPeopleWriteThem) {
  const absl::TimeZone zone = absl::UTCTimeZone();
  const absl::Time now = absl::FromCivil(absl::CivilSecond(2026, 11, 25, 15, 0, 0), zone);
  const std::pair<const char*, const char*> times[] = {
      {"90", "1m30s"},
      {"1h30m", "1h30m"},
      {"10m", "10m"},
      {"2d", "48h"},
      {"14:30", "30m"},
      {"14:59:30", "30s"},
      {"16:00", "23h"},  // it was so late yesterday
      {"2026-11-25T14:00:00", "1h"},
      {"2026-11-25T14:00:00+01:00", "2h"},
      {"2026-11-24", "39h"},
      {"2026-11-26", "is in the future"},
  };
  for (const auto& [text, ago] : times) {
    const auto read = ParseSince(text, now, zone);
    EXPECT_EQ(read.ok() ? absl::FormatDuration(*read) : std::string(read.status().message()), ago)
        << text;
  }
}

// What a whole command line of `muster` is answered before anything is done.
std::string Mistake(absl::string_view line) {
  const std::vector<base::Command> commands = Commands();
  std::vector<std::string> words = SplitWords(line);
  for (const base::Command& command : commands) {
    if (command.name != words.front()) continue;
    const std::vector<std::string> args(words.begin() + 1, words.end());
    testing::internal::CaptureStderr();
    EXPECT_EQ(command.run({command, args, commands}), 2) << line;
    return testing::internal::GetCapturedStderr();
  }
  return "no command";
}

TEST(CommandLinesTest, MistakesAreAnsweredInOneSentence) {
  Compare(
      {{"run --hlep", "muster run: unknown flag '--hlep'; did you mean --help?\n"},
       {"ps --jsno", "muster ps: unknown flag '--jsno'; did you mean --json?\n"},
       {"ps -a", "muster ps: unknown flag '-a'; see `muster ps --help`\n"},
       {"ps x", "muster ps: unexpected argument 'x'; see `muster ps --help`\n"},
       {"ps --hosts=a --hostfile=b", "muster ps: --hosts does not go with --hostfile"},
       {"ps --hosts=a --timeout=0", "muster ps: --timeout=0 is not a positive number of seconds"},
       {"attach --alk", "muster attach: unknown flag '--alk'; did you mean --all?\n"},
       {"attach", "muster attach: no run is named; `muster ps` lists the runs"},
       {"attach a b", "muster attach: unexpected argument 'b'"},
       {"stop --timeuot=3", "muster stop: unknown flag '--timeuot'; did you mean --timeout?\n"},
       {"stop --timeout=x a", "muster stop: --timeout=x is not a number of seconds"},
       {"stop", "muster stop: no run is named; `muster ps` lists the runs"},
       {"gpus --chekc", "muster gpus: unknown flag '--chekc'; did you mean --check?\n"},
       {"gpus 0", "muster gpus: unexpected argument '0'"},
       {"gpus --check --json", "muster gpus: --check prints nothing"},
       {"doctor --jsno", "muster doctor: unknown flag '--jsno'; did you mean --json?\n"},
       {"doctor --nnodes=2", "muster doctor: unknown flag '--nnodes'"},
       {"doctor \"\"", "muster doctor: the name of a directory is empty"},
       {"status --rdzv-endpiont=a:1", "muster status: unknown flag '--rdzv-endpiont'; did you"},
       {"status --wacth", "muster status: unknown flag '--wacth'; did you mean --watch?\n"},
       {"logs --folow", "muster logs: unknown flag '--folow'; did you mean --follow?\n"},
       {"kv --timeot=1 get a", "muster kv: unknown flag '--timeot'; did you mean --timeout?\n"},
       {"top --token-fiel=a", "muster top: unknown flag '--token-fiel'; did you mean"},
       {"replay --htlm=a", "muster replay: unknown flag '--htlm'; did you mean --html?\n"},
       {"replay", "muster replay: no event log is given"},
       {"store --prot=0", "muster store: unknown flag '--prot'; did you mean --port?\n"},
       {"store", "muster store: no port is named; give --port=PORT, or 0 for a free one\n"},
       {"store --port=0 --allow=x", "muster store: --allow=x is not a list of numeric"},
       {"store --port=0 --legacy-dialect=3",
        "muster store: --legacy-dialect=3 is not a valid choice; use auto, 1.x or 2.1\n"},
       {"sbatch --nodes=2", "muster sbatch: there is nothing to run after --"},
       {"manifest --imgae=a", "muster manifest: unknown flag '--imgae'; did you mean --image?"},
       {"manifest --image=a train.py", "muster manifest: unexpected argument 'train.py'"},
       {"manifest --image=a", "muster manifest: there is nothing to run after --"},
       {"manifest -- x", "muster manifest: no image is named"},
       {"manifest --image=a --env=X -- x", "muster manifest: --env=X is not a variable; write"},
       {"manifest --image=a --nodes=0 -- x", "muster manifest: --nodes=0 is not a number of"},
       {"token rotate --old-tokn-ttl=3", "muster token: unknown flag '--old-tokn-ttl'; did you"},
       {"token new --force", "muster token: unknown flag '--force'; see `muster token --help`"},
       {"token rotaet",
        "muster token: unknown command 'rotaet'; did you mean `muster token "
        "rotate`?\n"},
       {"token show --old-token-ttl=3", "muster token: `muster token show` takes no"},
       {"token show \"\"", "muster token: the name of the file is empty"}},
      Mistake);
}

TEST(CommandLinesTest, HelpOfEachCommandFitsATerminal) {
  for (const base::Command& command : Commands()) {
    const std::string help = base::HelpText(command);
    EXPECT_THAT(help, testing::StartsWith(absl::StrCat("Usage: muster ", command.name, " ")));
    EXPECT_THAT(help, HasSubstr("  -h, --help"));
    for (const absl::string_view line : absl::StrSplit(help, '\n')) {
      const bool is_example = absl::StartsWith(line, "  muster ");
      EXPECT_TRUE(line.size() <= 102 || is_example) << line;
    }
  }
}

}  // namespace
}  // namespace muster::launcher
