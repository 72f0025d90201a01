// Walks every flag in every spelling, every environment variable and every error of `muster run`.
#include "launcher/flags.h"

#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/flag_names.h"
#include "launcher/flag_table.h"

namespace muster::launcher {
namespace {

using rendezvous::Endpoint;

using Args = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Machine kMachine = {.cpus = 6, .nvidia_devices = 0};

Environment Env(Environment extra = {}) {
  extra.emplace("PATH", "/usr/bin:/bin");
  return extra;
}

ParsedRun Parse(Args args, Environment environment = Env()) {
  return ParseRun(args, Env(std::move(environment)), kMachine);
}

// For command lines that are right: `args`, then a script that runs anywhere.
LaunchConfig Config(Args args, Environment environment = {}) {
  args.push_back("true");
  const ParsedRun parsed = Parse(args, std::move(environment));
  const auto* config = std::get_if<LaunchConfig>(&parsed);
  const auto* error = std::get_if<UsageError>(&parsed);
  EXPECT_NE(config, nullptr) << testing::PrintToString(args) << ": "
                             << (error ? error->sentence : "a text");
  return config ? *config : LaunchConfig{};
}

// For command lines that are wrong: the sentence.
std::string Error(const Args& args, Environment environment = {}) {
  const ParsedRun parsed = Parse(args, std::move(environment));
  const auto* error = std::get_if<UsageError>(&parsed);
  return error ? error->sentence : "no error";
}

// One row for each flag with a value: what it does to the config.
struct ValueCase {
  const char* flag;
  const char* value;
  std::function<bool(const LaunchConfig&)> holds;
  // Flags that must stand beside it for the value to show.
  Args beside = {};
};

std::vector<ValueCase> ValueCases() {
  using C = const LaunchConfig&;
  return {
      {"--nnodes",
       "2:4",
       [](C c) { return c.min_nodes == 2 && c.max_nodes == 4; },
       {"--rdzv-endpoint=h"}},
      {"--nproc-per-node", "4", [](C c) { return c.nproc_per_node == 4; }},
      {"--node-rank", "1", [](C c) { return c.node_rank == 1; }},
      {"--role", "reader", [](C c) { return c.role == "reader"; }},
      {"--rdzv-endpoint", "h:7",
       [](C c) {
         return c.mode == RendezvousMode::kEndpoint && c.endpoint == Endpoint{"h", 7};
       }},
      {"--rdzv-id", "job1", [](C c) { return c.run_id == "job1"; }},
      {"--rdzv-backend",
       "static",
       [](C c) { return c.mode == RendezvousMode::kStatic; },
       {"--rdzv-endpoint=h:7"}},
      {"--rdzv-conf", "join_timeout=7", [](C c) { return c.timeouts.join == seconds(7); }},
      {"--master-addr",
       "h",
       [](C c) {
         return c.endpoint == Endpoint{"h", 7};
       },
       {"--nnodes=2", "--master-port=7"}},
      {"--master-port", "7",
       [](C c) {
         return c.endpoint == Endpoint{"127.0.0.1", 7};
       }},
      {"--local-addr", "10.0.0.9", [](C c) { return c.local_addr == "10.0.0.9"; }},
      {"--max-restarts", "3", [](C c) { return c.max_restarts == 3; }},
      {"--shutdown-timeout", "2.5", [](C c) { return c.shutdown_timeout == milliseconds(2500); }},
      {"--exit-code", "worker", [](C c) { return c.exit_code == ExitCodePolicy::kWorker; }},
      {"--log-dir", "/logs", [](C c) { return c.log_dir == "/logs"; }},
      {"--redirects", "0:3,11:1",
       [](C c) {
         return c.redirects.For(0) == Streams::kBoth && c.redirects.For(11) == Streams::kStdout;
       }},
      {"--tee", "3", [](C c) { return c.tee.all == Streams::kBoth; }},
      {"--log-level", "INFO", [](C c) { return c.log_level == LogLevel::kInfo; }},
  };
}

std::string WithUnderscores(std::string name) {
  for (std::size_t i = 2; i < name.size(); ++i) {
    if (name[i] == '-') name[i] = '_';
  }
  return name;
}

TEST(FlagsTest, EveryFlagWithAValueWorksInEverySpelling) {
  std::set<std::string> walked;
  for (const ValueCase& c : ValueCases()) {
    walked.insert(c.flag);
    EXPECT_FALSE(c.holds(Config(c.beside))) << c.flag;
    for (const std::string& name : {std::string(c.flag), WithUnderscores(c.flag)}) {
      Args joined = c.beside;
      joined.push_back(name + "=" + c.value);
      EXPECT_TRUE(c.holds(Config(joined))) << name << " joined by '='";
      Args apart = c.beside;
      apart.insert(apart.end(), {name, c.value});
      EXPECT_TRUE(c.holds(Config(apart))) << name << " and its value apart";
    }
    const Flag* flag = MatchFlags(c.flag).at(0);
    if (flag->short_name.empty()) continue;
    const std::string short_name(flag->short_name);
    EXPECT_TRUE(c.holds(Config({short_name, c.value}))) << short_name;
    EXPECT_TRUE(c.holds(Config({short_name + c.value}))) << short_name;
    EXPECT_TRUE(c.holds(Config({short_name + "=" + c.value}))) << short_name;
  }
  for (const Flag& flag : RunFlagTable()) {
    if (flag.kind == Flag::Kind::kValue) {
      EXPECT_TRUE(walked.count(std::string(flag.name)) > 0) << flag.name << " is not walked";
    }
  }
}

TEST(FlagsTest, EveryFlagWithAValueHasAnEnvironmentVariableThatTheCommandLineBeats) {
  for (const ValueCase& c : ValueCases()) {
    const std::string variable = EnvironmentVariable(*MatchFlags(c.flag).at(0));
    EXPECT_TRUE(c.holds(Config(c.beside, {{variable, c.value}}))) << variable;
    Args args = c.beside;
    // What the variable says does not matter, not even whether it is right.
    args.push_back(std::string(c.flag) + "=" + c.value);
    EXPECT_TRUE(c.holds(Config(args, {{variable, "?"}}))) << variable;
    // Empty: not given.
    EXPECT_TRUE(c.holds(Config(args, {{variable, ""}}))) << variable;
  }
}

TEST(FlagsTest, NamesOfTheVariablesAreTorchruns) {
  EXPECT_EQ(EnvironmentVariable(*MatchFlags("--nproc_per_node").at(0)), "PET_NPROC_PER_NODE");
  EXPECT_EQ(EnvironmentVariable(*MatchFlags("-r").at(0)), "PET_REDIRECTS");
  EXPECT_EQ(EnvironmentVariable(*MatchFlags("--help").at(0)), "");
}

TEST(FlagsTest, SwitchesWorkInEverySpellingAndFromTheEnvironment) {
  const auto is_standalone = [](const LaunchConfig& c) {
    return c.mode == RendezvousMode::kStandalone;
  };
  const std::string endpoint = "--rdzv-endpoint=h";
  EXPECT_FALSE(is_standalone(Config({endpoint})));
  EXPECT_TRUE(is_standalone(Config({endpoint, "--standalone"})));
  EXPECT_TRUE(is_standalone(Config({endpoint}, {{"PET_STANDALONE", "1"}})));
  EXPECT_TRUE(is_standalone(Config({endpoint}, {{"PET_STANDALONE", "true"}})));
  EXPECT_FALSE(is_standalone(Config({endpoint}, {{"PET_STANDALONE", "0"}})));

  const std::pair<const std::string, std::string> python = {"PYTHON_EXEC", "/usr/bin/false"};
  for (const char* name : {"-m", "--module"}) {
    EXPECT_EQ(Config({name}, {python}).program.argv, (Args{"/usr/bin/false", "-u", "-m", "true"}))
        << name;
  }
  EXPECT_EQ(Config({}, {python, {"PET_MODULE", "1"}}).program.argv.at(2), "-m");
  for (const char* name : {"--no-python", "--no_python"}) {
    EXPECT_EQ(Config({name}).program.argv, Args{"/usr/bin/true"}) << name;
  }
  EXPECT_EQ(Error({"nothing"}, {{"PET_NO_PYTHON", "1"}}),
            "cannot run 'nothing': no such command in PATH");
}

TEST(FlagsTest, OtherVariablesThanPetAreAskedLast) {
  EXPECT_EQ(Config({}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}}).shutdown_timeout, seconds(7));
  EXPECT_EQ(Config({}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}, {"PET_SHUTDOWN_TIMEOUT", "8"}})
                .shutdown_timeout,
            seconds(8));
  EXPECT_EQ(Config({}, {{"LOGLEVEL", "DEBUG"}}).log_level, LogLevel::kDebug);
}

TEST(FlagsTest, UnambiguousBeginningsOfANameWork) {
  EXPECT_EQ(Config({"--redirect=3"}).redirects.all, Streams::kBoth);
  EXPECT_EQ(Config({"--nproc", "2"}).nproc_per_node, 2);
  EXPECT_EQ(Config({"--nproc_per", "2"}).nproc_per_node, 2);
  EXPECT_EQ(Error({"--no=x", "true"}),
            "'--no' could be --node-rank or --no-python; write the name out");
  EXPECT_EQ(Error({"--master=x", "true"}),
            "'--master' could be --master-addr or --master-port; write the name out");
}

TEST(FlagsTest, ParsingStopsAtTheScript) {
  const ParsedRun parsed = Parse({"--nproc-per-node=2", "true", "--nproc-per-node=8", "--r=16",
                                  "--d", "64", "--help", "--", "-x"});
  ASSERT_TRUE(std::holds_alternative<LaunchConfig>(parsed));
  const auto& config = std::get<LaunchConfig>(parsed);
  EXPECT_EQ(config.nproc_per_node, 2);
  EXPECT_EQ(config.program.name, "true");
  EXPECT_EQ(config.program.argv, (Args{"/usr/bin/true", "--nproc-per-node=8", "--r=16", "--d", "64",
                                       "--help", "--", "-x"}));
}

TEST(FlagsTest, TwoDashesBeforeTheScriptAreDropped) {
  const ParsedRun parsed = Parse({"--nproc-per-node", "2", "--", "true", "--", "a"});
  EXPECT_EQ(std::get<LaunchConfig>(parsed).program.argv, (Args{"/usr/bin/true", "--", "a"}));
  // After them everything is the script, dashes or not.
  EXPECT_EQ(Error({"--", "--nnodes"}), "cannot run '--nnodes': no such file");
}

TEST(FlagsTest, EmptyValueIsAValue) {
  // Scripts write --rdzv_conf=$CONF with CONF empty; the next argument is not the value.
  EXPECT_EQ(Config({"--rdzv_conf=", "--rdzv_endpoint="}).mode, RendezvousMode::kStandalone);
  EXPECT_EQ(Config({"--rdzv-id=", "--rdzv-endpoint=h"}).run_id, "none");
}

TEST(FlagsTest, LastOfTwoCounts) {
  EXPECT_EQ(Config({"--nproc-per-node=2", "--nproc_per_node", "3"}).nproc_per_node, 3);
}

TEST(FlagsTest, BracketsOfAnIpv6AddressAreReadAsSuch) {
  EXPECT_EQ(Config({"--rdzv-endpoint", "[::1]"}).endpoint, (Endpoint{"::1", 29400}));
  EXPECT_EQ(Config({"--nnodes=2", "--master-addr=[fe80::1]"}).endpoint.host, "fe80::1");
  EXPECT_EQ(Config({"--local-addr=::1"}).local_addr, "::1");
}

TEST(FlagsTest, DefaultsAreTorchrunsButForTheShorterLastCall) {
  LaunchConfig config = Config({});
  EXPECT_EQ(config.run_id.substr(0, 11), "standalone-");
  EXPECT_NE(config.run_id, Config({}).run_id);
  config.run_id.clear();
  LaunchConfig expected;
  expected.program = {.name = "true", .argv = {"/usr/bin/true"}};
  EXPECT_EQ(config, expected);
}

TEST(FlagsTest, NprocWordsLookAtTheMachine) {
  EXPECT_EQ(Config({"--nproc-per-node=cpu"}).nproc_per_node, 6);
  EXPECT_EQ(Config({"--nproc-per-node=auto"}).nproc_per_node, 6);
  EXPECT_EQ(Config({"--nproc-per-node=gpu"}, {{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}}).nproc_per_node,
            4);
}

struct ModeCase {
  Args args;
  RendezvousMode mode;
  Endpoint endpoint;
  const char* run_id;  // null: a fresh one
};

TEST(FlagsTest, ModeFollowsFromWhatIsGiven) {
  using enum RendezvousMode;
  const ModeCase cases[] = {
      {{"--nproc-per-node=8"}, kStandalone, {}, nullptr},
      {{"--standalone"}, kStandalone, {}, nullptr},
      {{"--standalone", "--nnodes=1:4"}, kStandalone, {}, nullptr},
      {{"--standalone", "--rdzv-endpoint=h:1", "--rdzv-id=a"}, kStandalone, {}, "a"},
      {{"--rdzv-backend=static"}, kStandalone, {}, nullptr},
      {{"--rdzv-backend=c10d"}, kStandalone, {}, nullptr},
      {{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}, kStandalone, {}, nullptr},
      {{"--master-addr=h"}, kStandalone, {}, nullptr},
      {{"--master-port=0"}, kStandalone, {}, nullptr},
      {{"--master-port=53453"}, kStatic, {"127.0.0.1", 53453}, "none"},
      {{"--master-port=7", "--rdzv-backend=c10d"}, kStatic, {"127.0.0.1", 7}, "none"},
      {{"--master-addr=h", "--master-port=7"}, kStatic, {"h", 7}, "none"},
      {{"--rdzv-endpoint=h"}, kEndpoint, {"h", 29400}, "none"},
      {{"--rdzv-endpoint=h:7", "--rdzv-backend=c10d"}, kEndpoint, {"h", 7}, "none"},
      {{"--rdzv-endpoint=h:7", "--rdzv-backend=static"}, kStatic, {"h", 7}, "none"},
      {{"--nnodes=2", "--rdzv-endpoint=h"}, kEndpoint, {"h", 29400}, "none"},
      {{"--nnodes=2", "--rdzv-endpoint=h", "--master-addr=m"}, kEndpoint, {"h", 29400}, "none"},
      {{"--nnodes=2", "--master-addr=m"}, kStatic, {"m", 29500}, "none"},
      {{"--nnodes=2", "--master-addr=m", "--master-port=7"}, kStatic, {"m", 7}, "none"},
      {{"--nnodes=2", "--master-port=7"}, kStatic, {"127.0.0.1", 7}, "none"},
      {{"--nnodes=2", "--master-addr=m", "--rdzv-backend=c10d"}, kEndpoint, {"m", 29500}, "none"},
  };
  for (const ModeCase& c : cases) {
    const LaunchConfig config = Config(c.args);
    const std::string what = testing::PrintToString(c.args);
    EXPECT_EQ(config.mode, c.mode) << what;
    EXPECT_EQ(config.endpoint, c.endpoint) << what;
    if (c.run_id != nullptr) {
      EXPECT_EQ(config.run_id, c.run_id) << what;
    } else {
      EXPECT_EQ(config.run_id.substr(0, 11), "standalone-") << what;
    }
    if (c.mode == kStandalone) {
      EXPECT_EQ(config.max_nodes, 1) << what;
    }
  }
}

TEST(FlagsTest, StaticRendezvousHasEachNodeAndItsOwnJoinTimeout) {
  const Args args = {"--nnodes=1:3", "--master-addr=m"};
  const LaunchConfig config = Config(args);
  EXPECT_EQ(config.min_nodes, 3);
  EXPECT_EQ(config.node_rank, 0);
  EXPECT_EQ(config.timeouts.join, seconds(900));
  EXPECT_EQ(Config({"--nnodes=2", "--master-addr=m", "--rdzv-conf=timeout=5"}).timeouts.join,
            seconds(5));
}

TEST(FlagsTest, SchedulersRankIsTheHintOfAJobWithSeveralNodes) {
  const Args several = {"--nnodes=4", "--rdzv-endpoint=h"};
  EXPECT_EQ(Config(several).node_rank, std::nullopt);
  EXPECT_EQ(Config(several, {{"SLURM_NODEID", "2"}}).node_rank, 2);
  EXPECT_EQ(Config(several, {{"JOB_COMPLETION_INDEX", "3"}}).node_rank, 3);
  EXPECT_EQ(Config(several, {{"SLURM_NODEID", "2"}, {"PET_NODE_RANK", "1"}}).node_rank, 1);
  EXPECT_EQ(Config(several, {{"SLURM_NODEID", "x"}}).node_rank, std::nullopt);
  EXPECT_EQ(Config({"--nnodes=1"}, {{"SLURM_NODEID", "2"}}).node_rank, std::nullopt);
}

TEST(FlagsTest, TextsAreGivenOnRequest) {
  for (const char* flag : {"-h", "--help"}) {
    const ParsedRun parsed = Parse({"--nnodes=2", flag}, {{"PET_NNODES", "x"}});
    ASSERT_TRUE(std::holds_alternative<TextRequest>(parsed)) << flag;
    EXPECT_EQ(std::get<TextRequest>(parsed).text.substr(0, 17), "Usage: muster run");
  }
  const ParsedRun version = Parse({"--version"});
  EXPECT_THAT(std::get<TextRequest>(version).text, testing::MatchesRegex("muster [0-9.]+\n"));
}

TEST(FlagsTest, HelpShowsEveryFlagItsDefaultAndItsGroup) {
  const std::string help = std::get<TextRequest>(Parse({"--help"})).text;
  for (const Flag& flag : RunFlagTable()) {
    const std::string names =
        (flag.short_name.empty() ? "  " : "  " + std::string(flag.short_name) + ", ") +
        std::string(flag.name) +
        (flag.value_name.empty() ? "" : "=" + std::string(flag.value_name));
    const std::size_t at = help.find("\n" + names);
    ASSERT_NE(at, std::string::npos) << names;
    EXPECT_LT(help.rfind("\n" + std::string(flag.group) + ":\n", at), at) << names;
    if (flag.kind == Flag::Kind::kAsk) continue;
    const std::string entry = help.substr(at, help.find("]\n", at) - at);
    EXPECT_NE(entry.find("[default:"), std::string::npos) << names;
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = help.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 100u) << help.substr(begin, end - begin);
  }
}

struct ErrorCase {
  Args args;
  const char* sentence;
};

TEST(FlagsTest, EachMistakeIsOneSentenceThatSaysWhatToDo) {
  const ErrorCase cases[] = {
      {{"--nnodes=4:2", "true"},
       "--nnodes=4:2 has its minimum above its maximum; write MIN:MAX with MIN <= MAX"},
      {{"--nnodes", "0", "true"},
       "--nnodes 0 asks for no node; write N or MIN:MAX with numbers from 1"},
      {{"--nnodes=-1", "true"},
       "--nnodes=-1 asks for no node; write N or MIN:MAX with numbers from 1"},
      {{"--nnodes=1:2:3", "true"}, "--nnodes=1:2:3 is not a number of nodes; write N or MIN:MAX"},
      {{"--nnodes=x", "true"}, "--nnodes=x is not a number of nodes; write N or MIN:MAX"},
      {{"--nproc_per_node=0", "true"},
       "--nproc_per_node=0 starts no worker; give a number from 1, or cpu, gpu or auto"},
      {{"--nproc-per-node", "-1", "true"},
       "--nproc-per-node -1 starts no worker; give a number from 1, or cpu, gpu or auto"},
      {{"--nproc-per-node=banana", "true"},
       "--nproc-per-node=banana is not a number of workers; give a number from 1, or cpu, gpu or "
       "auto"},
      {{"--nproc-per-node=gpu", "true"},
       "--nproc-per-node=gpu finds no NVIDIA GPU on this machine; give a number, cpu or auto"},
      {{"--node-rank=-1", "true"}, "--node-rank=-1 is not a node rank; give a whole number from 0"},
      {{"--nnodes=2", "--master-addr=m", "--node-rank=2", "true"},
       "node rank 2 is not among the nodes of --nnodes=2, which count from 0; correct one of the "
       "two"},
      {{"--role=a/b", "true"},
       "--role=a/b is not usable: role \"a/b\" may only hold letters, digits, '.', '_' and '-'"},
      {{"--rdzv-id=../../pwn", "true"},
       "--rdzv-id=../../pwn is not usable: run id \"../../pwn\" must start with a letter or a "
       "digit"},
      {{"--rdzv-backend=etcd", "true"},
       "--rdzv-backend=etcd is not supported, and no etcd is needed; use c10d"},
      {{"--rdzv-backend=zeus", "true"},
       "--rdzv-backend=zeus is not a rendezvous backend; use c10d, static or muster"},
      {{"--rdzv-endpoint=h:99999", "true"},
       "--rdzv-endpoint=h:99999 has a bad port; a port is a number from 0 to 65535"},
      {{"--rdzv-endpoint=h h:1", "true"},
       "--rdzv-endpoint=h h:1 has a bad host; write HOST:PORT, with brackets around an IPv6 "
       "address"},
      {{"--rdzv-backend=static", "--rdzv-endpoint=h", "true"},
       "--rdzv-endpoint=h has no port; write HOST:PORT, with brackets around an IPv6 address"},
      {{"--nnodes=2", "--rdzv-endpoint=h:0", "true"},
       "--rdzv-endpoint=h:0 has port 0, which the other nodes of --nnodes=2 cannot know; choose a "
       "port"},
      {{"--rdzv-conf=join_timeout=0", "true"},
       "--rdzv-conf=join_timeout=0 has a bad join_timeout; give it a number of seconds above 0"},
      {{"--master-port=http", "true"},
       "--master-port=http has a bad port; a port is a number from 0 to 65535"},
      {{"--master-addr=h/x", "true"},
       "--master-addr=h/x has a bad host; write HOST:PORT, with brackets around an IPv6 address"},
      {{"--max-restarts", "-1", "true"},
       "--max-restarts -1 is not a number of restarts; give a whole number from 0"},
      {{"--shutdown-timeout=-5", "true"},
       "--shutdown-timeout=-5 is not a time; give a number of seconds from 0"},
      {{"--exit-code=2", "true"},
       "--exit-code=2 is not a rule for the exit code; use torchrun or worker"},
      {{"-r", "9", "true"},
       "-r 9 is not a stream choice; write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or local "
       "ranks with theirs such as 0:3,1:2"},
      {{"--log-level=loud", "true"},
       "--log-level=loud is not a log level; use debug, info, warning or error"},
      {{"--nnodes=2", "true"},
       "--nnodes=2 needs --rdzv-endpoint=HOST:PORT, the same on every node, or --master-addr and "
       "--node-rank"},
      {{"--nnodes=1:4", "true"},
       "--nnodes=1:4 needs --rdzv-endpoint=HOST:PORT, the same on every node, or --master-addr "
       "and --node-rank"},
      {{"--nnodes=2", "--master-port=0", "true"},
       "--master-port=0 leaves the port open, which the other nodes of --nnodes=2 cannot know; "
       "choose a port"},
      {{"--standalone", "--nnodes=2", "true"},
       "--standalone runs one node, but --nnodes=2 asks for more; drop one of them"},
      {{"-m", "--no-python", "x"},
       "--module and --no-python exclude each other: a module is run by Python; drop one of them"},
      {{}, "no script to run; write `muster run [flags] script [script args...]`"},
      {{"--standalone"}, "no script to run; write `muster run [flags] script [script args...]`"},
      {{"--standalone", "--"},
       "no script to run; write `muster run [flags] script [script args...]`"},
      {{"no-such-script.py"}, "cannot run 'no-such-script.py': no such file"},
      {{"/tmp"}, "cannot run '/tmp': is a directory"},
      {{"--nprocs=2", "true"}, "unknown flag '--nprocs'; `muster run --help` lists the flags"},
      {{"--nproc-per-nod3=2", "true"},
       "unknown flag '--nproc-per-nod3'; did you mean --nproc-per-node?"},
      {{"--rdvz_endpoint", "h", "true"},
       "unknown flag '--rdvz_endpoint'; did you mean --rdzv-endpoint?"},
      {{"-x", "true"}, "unknown flag '-x'; `muster run --help` lists the flags"},
      {{"--standalone=1", "true"},
       "'--standalone=1' gives a value to --standalone, which takes none; write it alone"},
      {{"--nnodes"}, "'--nnodes' needs a value; write --nnodes=N|MIN:MAX"},
      {{"--role", "--standalone", "true"}, "'--role' needs a value; write --role=NAME"},
  };
  for (const ErrorCase& c : cases) {
    EXPECT_EQ(Error(c.args), c.sentence) << testing::PrintToString(c.args);
  }
}

TEST(FlagsTest, MistakeInAVariableNamesTheVariable) {
  EXPECT_EQ(Error({"true"}, {{"PET_NNODES", "x"}}),
            "environment variable PET_NNODES=x is not a number of nodes; write N or MIN:MAX");
  EXPECT_EQ(Error({"true"}, {{"PET_STANDALONE", "yes please"}}),
            "environment variable PET_STANDALONE=yes please is neither 0 nor 1; set it to one of "
            "them");
  EXPECT_EQ(Error({"true"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon"}}),
            "environment variable TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon is not a time; give a number "
            "of seconds from 0");
}

}  // namespace
}  // namespace muster::launcher
