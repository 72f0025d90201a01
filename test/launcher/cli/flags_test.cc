// Checks every flag in every spelling, every environment variable and every error of `muster run`.
#include "launcher/cli/flags.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "base/cli/command.h"
#include "launcher/cli/flag_table.h"

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
  return ParseRun(args, Dialect::kRun, Env(std::move(environment)), kMachine);
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

// The number of a descriptor that is open.
const char* Descriptor() {
  static const std::string number = std::to_string(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  return number.c_str();
}

// One row for each flag with a value: what it does to the config.
struct ValueCase {
  const char* flag;
  const char* value;
  std::function<bool(const LaunchConfig&)> holds;
  // Flags that must stand beside it for the value to show.
  Args beside = {};
  // What has to stand there instead when it does not.
  Args instead = {};
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
      {"--topology", "rack-7/n1", [](C c) { return c.topology == "rack-7/n1"; }},
      {"--role", "reader", [](C c) { return c.role == "reader"; }},
      {"--rdzv-endpoint", "h:7",
       [](C c) {
         return c.mode == RendezvousMode::kEndpoint && c.endpoint == Endpoint{"h", 7};
       }},
      {"--rdzv-id", "job1", [](C c) { return c.run_id == "job1"; }},
      {"--rdzv-backend",
       "static",
       [](C c) { return c.mode == RendezvousMode::kFixedPort; },
       {"--rdzv-endpoint=h:7"}},
      {"--rdzv-conf", "join_timeout=7", [](C c) { return c.timeouts.join == seconds(7); }},
      {"--token-file", "/secrets/team", [](C c) { return c.token.file == "/secrets/team"; }},
      {"--tls-ca",
       "/site/ca",
       [](C c) { return c.token.tls.ca == "/site/ca"; },
       {"--tls-cert=c", "--tls-key=k"},
       {"--tls-ca=a"}},
      {"--tls-cert",
       "/site/cert",
       [](C c) { return c.token.tls.certificate == "/site/cert"; },
       {"--tls-ca=a", "--tls-key=k"},
       {"--tls-cert=c"}},
      {"--tls-key",
       "/site/key",
       [](C c) { return c.token.tls.key == "/site/key"; },
       {"--tls-ca=a", "--tls-cert=c"},
       {"--tls-key=k"}},
      {"--token-fd", Descriptor(), [](C c) { return c.token.fd == std::atoi(Descriptor()); }},
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
      {"--restart-window", "60", [](C c) { return c.restart.window == seconds(60); }},
      {"--restart-delay", "0.5:8",
       [](C c) {
         return c.restart.delay == milliseconds(500) && c.restart.longest_delay == seconds(8);
       }},
      {"--no-progress-limit", "3", [](C c) { return c.restart.no_progress_limit == 3; }},
      {"--straggler-threshold", "0.25", [](C c) { return c.straggler_threshold == 0.25; }},
      {"--no-retry-exit-codes", "2,64-78",
       [](C c) {
         return c.final_exit_codes == std::vector<ExitCodeRange>{{2, 2}, {64, 78}};
       }},
      {"--scale-up", "next-restart",
       [](C c) { return c.scale_up == rendezvous::ScaleUp::kNextRestart; }},
      {"--hang-timeout", "30", [](C c) { return c.hang.timeout == seconds(30); }},
      {"--hang-first-beat-timeout",
       "300",
       [](C c) { return c.hang.first_beat_timeout == seconds(300); },
       {"--hang-timeout=1"}},
      {"--liveness", "output", [](C c) { return c.hang.output_counts; }, {"--hang-timeout=1"}},
      {"--hang-action",
       "end",
       [](C c) { return c.hang.action == HangAction::kEnd; },
       {"--hang-timeout=1"}},
      {"--stack-command", "pstack {pid}",
       [](C c) { return c.hang.stack_command == "pstack {pid}"; }},
      {"--health-check", "nvidia-smi -L", [](C c) { return c.health.command == "nvidia-smi -L"; }},
      {"--health-check-timeout", "5", [](C c) { return c.health.timeout == seconds(5); }},
      {"--drain-interval", "5", [](C c) { return c.drain_interval == seconds(5); }},
      {"--health-port", "29480",
       [](C c) {
         return c.health_endpoint == Endpoint{"127.0.0.1", 29480};
       }},
      {"--http", "9400",
       [](C c) {
         return c.http == Endpoint{"127.0.0.1", 9400};
       }},
      {"--leftovers", "keep", [](C c) { return c.leftovers == worker::LeftoverPolicy::kKeep; }},
      {"--exit-code", "worker", [](C c) { return c.exit_code == ExitCodePolicy::kWorker; }},
      {"--log-dir", "/logs", [](C c) { return c.log_dir == "/logs"; }},
      {"--redirects", "0:3,11:1",
       [](C c) {
         return c.redirects.For(0) == Streams::kBoth && c.redirects.For(11) == Streams::kStdout;
       }},
      {"--tee", "3", [](C c) { return c.tee.all == Streams::kBoth; }},
      {"--total-workers", "6", [](C c) { return c.nproc_per_node == 6; }},
      {"--devices", "4-6",
       [](C c) {
         return c.devices == Args{"4", "5", "6"};
       }},
      {"--numa-binding", "core-complex",
       [](C c) { return c.numa_binding == NumaMode::kCoreComplex; }},
      {"--worker-store", "worker", [](C c) { return c.worker_store == WorkerStore::kWorker; }},
      {"--signals-to-handle", "SIGUSR1, TERM",
       [](C c) {
         return c.stop_signals == std::vector<int>{SIGUSR1, SIGTERM};
       }},
      {"--local-ranks-filter", "0,3",
       [](C c) {
         return c.local_ranks_filter == std::vector<int>{0, 3};
       }},
      {"--log-line-prefix-template", "${rank}|",
       [](C c) { return c.prefix_template == "${rank}|"; }},
      {"--duplicate-stdout-filters", "loss,a,,b",
       [](C c) {
         return c.stdout_filters == Args{"loss", "a,b"};
       }},
      {"--duplicate-stderr-filters", "Error",
       [](C c) { return c.stderr_filters == Args{"Error"}; }},
      {"--event-log", "/logs/events", [](C c) { return c.event_log == "/logs/events"; }},
      {"--log-level", "INFO", [](C c) { return c.log_level == LogLevel::kInfo; }},
  };
}

// torchrun's flags that have nothing to say here: each is read and checked, and changes nothing.
const std::vector<std::pair<std::string, std::string>> kWithoutEffect = {
    {"--start-method", "forkserver"}, {"--monitor-interval", "5"},
    {"--exit-barrier-timeout", "9"},  {"--logs-specs", "default"},
    {"--event-log-handler", "null"},
};

const Flag& FlagNamed(const std::string& name) {
  return *base::MatchFlags(RunFlagTable(), name).at(0);
}

std::string VariableOf(const std::string& name) {
  return base::EnvironmentVariable(RunRow(Dialect::kRun), FlagNamed(name));
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
    Args without = c.beside;
    without.insert(without.end(), c.instead.begin(), c.instead.end());
    EXPECT_FALSE(c.holds(Config(without))) << c.flag;
    for (const std::string& name : {std::string(c.flag), WithUnderscores(c.flag)}) {
      Args joined = c.beside;
      joined.push_back(name + "=" + c.value);
      EXPECT_TRUE(c.holds(Config(joined))) << name << " joined by '='";
      Args apart = c.beside;
      apart.insert(apart.end(), {name, c.value});
      EXPECT_TRUE(c.holds(Config(apart))) << name << " and its value apart";
    }
    for (const absl::string_view short_view : base::ShortNames(FlagNamed(c.flag))) {
      const std::string short_name(short_view);
      EXPECT_TRUE(c.holds(Config({short_name, c.value}))) << short_name;
      EXPECT_TRUE(c.holds(Config({short_name + c.value}))) << short_name;
      EXPECT_TRUE(c.holds(Config({short_name + "=" + c.value}))) << short_name;
    }
  }
  walked.insert("--print-completion");  // TextsAreGivenOnRequest
  walked.insert({"--hosts", "--hostfile", "--fanout", "--launch-with", "--ssh-control-persist",
                 "--export"});  // HostsRunTest
  for (const Flag& flag : RunFlagTable()) {
    if (flag.kind == Flag::Kind::kValue && flag.only_for.empty()) {
      EXPECT_TRUE(walked.count(std::string(flag.name)) > 0) << flag.name << " is not walked";
    }
  }
}

TEST(FlagsTest, EveryFlagWithAValueHasAnEnvironmentVariableThatTheCommandLineBeats) {
  for (const ValueCase& c : ValueCases()) {
    const std::string variable = VariableOf(c.flag);
    if (std::string(c.flag) == "--numa-binding") {
      EXPECT_EQ(variable, "");  // torchrun has none either
      continue;
    }
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
  EXPECT_EQ(VariableOf("--nproc_per_node"), "PET_NPROC_PER_NODE");
  EXPECT_EQ(VariableOf("-r"), "PET_REDIRECTS");
  EXPECT_EQ(VariableOf("--help"), "");
}

TEST(FlagsTest, EveryChoiceThatTheHelpShowsIsTaken) {
  for (const Flag& flag : RunFlagTable()) {
    for (const std::string& choice : base::ChoicesOf(flag)) {
      RunFlags flags;
      EXPECT_EQ(flag.set(choice, flags), std::nullopt) << flag.name << "=" << choice;
    }
  }
}

TEST(FlagsTest, TorchrunsFlagsWithoutMeaningHereChangeNothing) {
  LaunchConfig expected = Config({});
  const auto ignored = [](const Flag& flag) { return flag.kind == Flag::Kind::kIgnored; };
  EXPECT_EQ(absl::c_count_if(RunFlagTable(), ignored), std::ssize(kWithoutEffect));
  for (const auto& [flag, value] : kWithoutEffect) {
    for (const std::string& name : {flag, WithUnderscores(flag)}) {
      LaunchConfig config = Config({name + "=" + value});
      config.run_id = expected.run_id;
      EXPECT_EQ(config, expected) << name;
    }
    EXPECT_TRUE(ignored(FlagNamed(flag))) << flag;
    const std::string variable = VariableOf(flag);
    EXPECT_EQ(variable.empty(), flag == "--logs-specs") << flag;
    if (!variable.empty()) Config({}, {{variable, value}});
  }
}

// What `muster launch` makes of a command line: the words that each worker runs.
Args LaunchWords(Args args, Environment environment = {}) {
  args.push_back("true");
  args.push_back("--lr=1");
  const ParsedRun parsed = ParseRun(args, Dialect::kLaunch, Env(std::move(environment)), kMachine);
  const auto* error = std::get_if<UsageError>(&parsed);
  if (error != nullptr) return {error->sentence};
  return std::get<LaunchConfig>(parsed).program.argv;
}

TEST(FlagsTest, LaunchPutsTheLocalRankInFrontOfTheScriptsArguments) {
  EXPECT_EQ(LaunchWords({"--nproc_per_node=2"}),
            (Args{"/usr/bin/true", "--local-rank=${local_rank}", "--lr=1"}));
  EXPECT_EQ(LaunchWords({"--local-rank-style=underscore"}),
            (Args{"/usr/bin/true", "--local_rank=${local_rank}", "--lr=1"}));
  EXPECT_EQ(LaunchWords({}, {{"PET_LOCAL_RANK_STYLE", "underscore"}}).at(1),
            "--local_rank=${local_rank}");
  for (const char* flag : {"--use-env", "--use_env"}) {
    EXPECT_EQ(LaunchWords({flag}), (Args{"/usr/bin/true", "--lr=1"})) << flag;
  }
  EXPECT_EQ(LaunchWords({}, {{"PET_USE_ENV", "1"}}), (Args{"/usr/bin/true", "--lr=1"}));
  EXPECT_EQ(LaunchWords({"--local-rank-style=dots"}).at(0),
            "--local-rank-style=dots is not a valid choice; use dash or underscore");
  // They are launch's alone.
  EXPECT_EQ(Error({"--use-env", "true"}),
            "'--use-env' is a flag of `muster launch`; use that, or drop it");
  EXPECT_EQ(Config({}, {{"PET_USE_ENV", "?"}}).program.name, "true");
}

TEST(FlagsTest, TotalNumberOfWorkersGivesTheOtherNumbers) {
  for (const char* flag : {"-n", "-np", "--total-workers"}) {
    EXPECT_EQ(Config({flag, "6"}).nproc_per_node, 6) << flag;
  }
  EXPECT_EQ(Config({"-n6", "--nnodes=2", "--rdzv-endpoint=h"}).nproc_per_node, 3);
  const LaunchConfig per_node = Config({"-n", "6", "-ppn", "2", "--rdzv-endpoint=h"});
  EXPECT_EQ(per_node.nproc_per_node, 2);
  EXPECT_EQ(per_node.min_nodes, 3);
  EXPECT_EQ(per_node.max_nodes, 3);
  EXPECT_EQ(Config({"-n", "6", "-ppn", "2", "--nnodes=3", "--rdzv-endpoint=h"}).max_nodes, 3);
  EXPECT_EQ(Error({"-n", "5", "--nnodes=2", "--rdzv-endpoint=h", "true"}),
            "--total-workers=5 does not fit --nnodes=2; give a multiple of it");
  EXPECT_EQ(Error({"-n", "5", "-ppn", "2", "true"}),
            "--total-workers=5 does not fit --nproc-per-node=2; give a multiple of it");
  EXPECT_EQ(Error({"-n", "8", "-ppn", "2", "--nnodes=3", "--rdzv-endpoint=h", "true"}),
            "--total-workers=8 does not fit --nproc-per-node=2 and --nnodes=3; leave one of the "
            "three out");
  EXPECT_EQ(Error({"-n", "8", "--nnodes=1:3", "--rdzv-endpoint=h", "true"}),
            "--total-workers=8 does not go with --nnodes=1:3, where the number of workers is open; "
            "give --nproc-per-node instead");
}

TEST(FlagsTest, DevicesAreTheGpusThatAreCounted) {
  EXPECT_EQ(Config({"--devices=4,5", "--nproc-per-node=gpu"}).nproc_per_node, 2);
  EXPECT_EQ(Error({"--devices=4,4", "true"}).substr(0, 14), "--devices=4,4 ");
}

TEST(FlagsTest, VirtualLocalRankNeedsADeviceForEachWorker) {
  const Environment two = {{"CUDA_VISIBLE_DEVICES", "4,5"}};
  EXPECT_TRUE(Config({"--virtual-local-rank", "--nproc-per-node=2"}, two).virtual_local_rank);
  EXPECT_TRUE(Config({"--prefix-lines"}).prefix_lines);
  EXPECT_TRUE(Config({"--retry-usage-errors"}).retry_usage_errors);
  EXPECT_TRUE(Config({}, {{"PET_VIRTUAL_LOCAL_RANK", "1"}}).virtual_local_rank);
  EXPECT_NE(Error({"--virtual_local_rank", "--nproc-per-node=3", "true"}, two), "no error");
}

TEST(FlagsTest, WorkersServeTheStoreWhereTorchrunIsToldSo) {
  EXPECT_EQ(Config({}, {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}}).worker_store,
            WorkerStore::kWorker);
  EXPECT_EQ(
      Config({"--worker-store=agent"}, {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}}).worker_store,
      WorkerStore::kAgent);
}

TEST(FlagsTest, TunnelIsForWhereThereIsANetworkAndATokenOrCertificates) {
  const auto store = [](const Args& flags) {
    Args all = {"--worker-store=tunnel"};
    all.insert(all.end(), flags.begin(), flags.end());
    return Config(all).worker_store;
  };
  EXPECT_EQ(store({"--rdzv-endpoint=node0:29400"}), WorkerStore::kTunnel);
  EXPECT_EQ(store({"--nnodes=2", "--master-addr=node0", "--node-rank=1"}), WorkerStore::kTunnel);
  EXPECT_EQ(store({}), WorkerStore::kAgent);
  EXPECT_EQ(store({"--master-port=29500"}), WorkerStore::kAgent);
  EXPECT_EQ(store({"--insecure"}), WorkerStore::kAgent);
  const std::string refused =
      "--worker-store=tunnel carries the workers' store over TLS, which --insecure (or "
      "MUSTER_INSECURE=1) goes without; drop one of them";
  const Args network = {"--worker-store=tunnel", "--rdzv-endpoint=node0:29400"};
  EXPECT_EQ(Error({network[0], network[1], "--insecure", "true"}), refused);
  EXPECT_EQ(Error({network[0], network[1], "true"}, {{"MUSTER_INSECURE", "1"}}), refused);
}

TEST(FlagsTest, OneThreadForEachOfSeveralWorkersIsTold) {
  EXPECT_TRUE(Config({}).notes.empty());
  ASSERT_EQ(Config({"--nproc-per-node=2"}).notes.size(), 1u);
  EXPECT_THAT(Config({"--nproc-per-node=2"}).notes[0], testing::HasSubstr("OMP_NUM_THREADS"));
  EXPECT_TRUE(Config({"--nproc-per-node=2"}, {{"OMP_NUM_THREADS", "3"}}).notes.empty());
}

TEST(FlagsTest, UnknownSignalIsLeftOutAndTold) {
  const LaunchConfig config = Config({"--signals-to-handle=SIGTERM,SIGNIX"});
  EXPECT_EQ(config.stop_signals, std::vector<int>{SIGTERM});
  EXPECT_THAT(config.notes,
              testing::ElementsAre(
                  "--signals-to-handle: there is no signal SIGNIX on this system; ignored"));
}

TEST(FlagsTest, PurposeIsAskedFor) {
  EXPECT_EQ(Config({}).purpose, Purpose::kRun);
  EXPECT_EQ(Config({"--dry-run"}).purpose, Purpose::kDryRun);
  EXPECT_EQ(Config({"--print-config"}).purpose, Purpose::kPrintConfig);
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
  // A beginning that only one of torchrun's own flags has means that one, as it does there.
  EXPECT_EQ(Config({"--t=3"}).tee.all, Streams::kBoth);
  EXPECT_TRUE(Config({"--v"}).virtual_local_rank);
  EXPECT_EQ(Error({"--no=x", "true"}),
            "'--no' could be --node-rank or --no-copy or --no-python or --no-progress-limit or "
            "--no-retry-exit-codes; write the name out");
  EXPECT_EQ(Config({"--no-p"}).program.argv, Config({"--no-python"}).program.argv);
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
  EXPECT_EQ(Error({"--", "--nnodes"}),
            "cannot run '--nnodes': no such file, nor a command in PATH");
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

// "Three workers started on a login node, and all of them died of 'no CUDA device'."
TEST(FlagsTest, GpusThatOnlyCudaVisibleDevicesKnowsAreTold) {
  const Environment three = {{"CUDA_VISIBLE_DEVICES", "0,1,2"}, {"OMP_NUM_THREADS", "1"}};
  for (const std::string word : {"gpu", "auto"}) {
    const LaunchConfig config = Config({"--nproc-per-node=" + word}, three);
    EXPECT_EQ(config.nproc_per_node, 3);
    EXPECT_THAT(config.notes,
                testing::ElementsAre("--nproc-per-node=" + word +
                                     " counts 3 GPUs in CUDA_VISIBLE_DEVICES=0,1,2, but this "
                                     "machine has no NVIDIA device; the workers may find none"));
  }
  EXPECT_TRUE(Config({"--nproc-per-node=3"}, three).notes.empty());
  // One note is enough.
  EXPECT_THAT(Config({"--nproc-per-node=gpu", "--devices=0-2"}, {{"OMP_NUM_THREADS", "1"}}).notes,
              testing::ElementsAre(testing::HasSubstr("--devices=0-2 is not checked")));
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
      {{"--standalone", "--rdzv-endpoint=h:1", "--rdzv-id=a"}, kStandalone, {}, nullptr},
      {{"--rdzv-id=a"}, kStandalone, {}, "a"},
      {{"--rdzv-backend=static"}, kStandalone, {}, nullptr},
      {{"--rdzv-backend=c10d"}, kStandalone, {}, nullptr},
      {{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}, kStandalone, {}, nullptr},
      {{"--master-addr=h"}, kStandalone, {}, nullptr},
      {{"--master-port=0"}, kStandalone, {}, nullptr},
      {{"--master-port=53453"}, kFixedPort, {"127.0.0.1", 53453}, "none"},
      {{"--master-port=7", "--rdzv-backend=c10d"}, kFixedPort, {"127.0.0.1", 7}, "none"},
      {{"--master-addr=h", "--master-port=7"}, kFixedPort, {"h", 7}, "none"},
      {{"--rdzv-endpoint=h"}, kEndpoint, {"h", 29400}, "none"},
      {{"--rdzv-endpoint=h:7", "--rdzv-backend=c10d"}, kEndpoint, {"h", 7}, "none"},
      {{"--rdzv-endpoint=h:7", "--rdzv-backend=static"}, kFixedPort, {"h", 7}, "none"},
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

// "Our script exports PET_RDZV_ID; under torchrun two standalone jobs still had ids of their own."
TEST(FlagsTest, StandaloneJobHasAFreshRunIdEvenWhenOneIsGiven) {
  const Args flag = {"--standalone", "--rdzv-id=job7"};
  EXPECT_EQ(Config(flag).run_id.substr(0, 11), "standalone-");
  EXPECT_NE(Config(flag).run_id, Config(flag).run_id);
  const LaunchConfig by_environment =
      Config({}, {{"PET_STANDALONE", "1"}, {"PET_RDZV_ID", "job7"}});
  EXPECT_EQ(by_environment.run_id.substr(0, 11), "standalone-");
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

// "musterd refuses our jobs for want of a name, and Slurm has given each of them a number."
TEST(FlagsTest, SlurmsJobIsTheRunIdWhereNodesShareARendezvous) {
  const Environment slurm = {{"SLURM_JOB_ID", "4711"}};
  EXPECT_EQ(Config({"--nnodes=2", "--rdzv-endpoint=h"}, slurm).run_id, "4711");
  EXPECT_EQ(Config({"--rdzv-endpoint=h", "--rdzv-id=mine"}, slurm).run_id, "mine");
  EXPECT_EQ(Config({"--rdzv-endpoint=h", "--rdzv-id="}, slurm).run_id, "4711");
  EXPECT_EQ(Config({"--rdzv-endpoint=h"}, {{"SLURM_JOB_ID", "a\nb"}}).run_id, "none");
  // Elsewhere it is torchrun's: static nodes are "none", one node alone has a fresh name.
  EXPECT_EQ(Config({"--nnodes=2", "--master-addr=m"}, slurm).run_id, "none");
  EXPECT_EQ(Config({"--master-port=7"}, slurm).run_id, "none");
  EXPECT_EQ(Config({"--standalone"}, slurm).run_id.substr(0, 11), "standalone-");
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

TEST(FlagsTest, SwitchesThatSlurmNamesPlaceANodeUnlessTheUserDoes) {
  const Environment slurm = {{"SLURM_NODEID", "2"},
                             {"SLURM_TOPOLOGY_ADDR", "s0.s4.node12.example.org"},
                             {"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch.node"}};
  const Args several = {"--nnodes=4", "--rdzv-endpoint=h"};
  EXPECT_EQ(Config(several, slurm).topology, "s0/s4");
  EXPECT_EQ(Config({"--nnodes=4", "--rdzv-endpoint=h", "--topology=a"}, slurm).topology, "a");
  // The number that Slurm gave the node would else come before it; the user's own still does.
  EXPECT_EQ(Config(several, slurm).node_rank, std::nullopt);
  EXPECT_EQ(Config({"--nnodes=4", "--rdzv-endpoint=h", "--node-rank=1"}, slurm).node_rank, 1);
  // Static ranks are exact, and Slurm's number is one.
  EXPECT_EQ(Config({"--nnodes=4", "--master-addr=m"}, slurm).node_rank, 2);
  // Where Slurm knows of no switches there is the node alone, or nothing.
  const Environment flat = {{"SLURM_NODEID", "2"},
                            {"SLURM_TOPOLOGY_ADDR", "node12"},
                            {"SLURM_TOPOLOGY_ADDR_PATTERN", "node"}};
  EXPECT_EQ(Config(several, flat).topology, "");
  EXPECT_EQ(Config(several, flat).node_rank, 2);
  EXPECT_EQ(Config(several, {{"SLURM_TOPOLOGY_ADDR", "s0.s4.node12"}}).topology, "");
  EXPECT_EQ(Config({"--nnodes=1"}, slurm).topology, "");
}

TEST(FlagsTest, TextsAreGivenOnRequest) {
  for (const char* flag : {"-h", "--help"}) {
    const ParsedRun parsed = Parse({"--nnodes=2", flag}, {{"PET_NNODES", "x"}});
    ASSERT_TRUE(std::holds_alternative<TextRequest>(parsed)) << flag;
    EXPECT_EQ(std::get<TextRequest>(parsed).text.substr(0, 17), "Usage: muster run");
  }
  const ParsedRun version = Parse({"--version"});
  EXPECT_THAT(std::get<TextRequest>(version).text, testing::MatchesRegex("muster [0-9.]+\n"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const ParsedRun completion = Parse({"--print-completion", shell}, {{"PET_NNODES", "x"}});
    EXPECT_TRUE(std::holds_alternative<base::Shell>(completion)) << shell;
  }
  const ParsedRun launch = ParseRun({"-h"}, Dialect::kLaunch, Env(), kMachine);
  EXPECT_THAT(std::get<TextRequest>(launch).text, testing::HasSubstr("--local-rank-style"));
  EXPECT_THAT(std::get<TextRequest>(Parse({"-h"})).text,
              testing::Not(testing::HasSubstr("--local-rank-style")));
}

TEST(FlagsTest, HelpShowsEveryFlagItsDefaultAndItsGroup) {
  const std::string help = std::get<TextRequest>(Parse({"--help"})).text;
  for (const Flag& flag : RunFlagTable()) {
    if (flag.only_for == "launch") continue;
    std::string names = "  ";
    for (const absl::string_view name : base::ShortNames(flag)) names += std::string(name) + ", ";
    names += std::string(flag.name) +
             (flag.value_name.empty() ? "" : "=" + std::string(flag.value_name));
    const std::size_t at = help.find("\n" + names);
    ASSERT_NE(at, std::string::npos) << names;
    EXPECT_LT(help.rfind("\n" + std::string(flag.group) + ":\n", at), at) << names;
    if (flag.kind == Flag::Kind::kAsk || flag.kind == Flag::Kind::kText) continue;
    const std::string entry = help.substr(at, help.find("]\n", at) - at);
    const char* const ending = flag.kind == Flag::Kind::kIgnored ? "[no effect;" : "[default:";
    EXPECT_NE(entry.find(ending), std::string::npos) << names;
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

// An argument of 128 KiB was compared with every flag, letter by letter.
TEST(FlagsTest, ArgumentThatIsFarTooLongIsNearNoFlag) {
  const std::string flag = "--nnodes" + std::string(130'000, 's');
  EXPECT_EQ(
      Error({flag, "true"}),
      "unknown flag '" + flag +
          "'; `muster run --help` lists the flags; the script's own flags go after the script");
}

TEST(FlagsTest, EachMistakeIsOneSentenceThatSaysWhatToDo) {
  // What is typed => what is answered.
  constexpr char kMistakes[] = R"(
--nnodes=4:2 true => --nnodes=4:2 has its minimum above its maximum; write MIN:MAX with MIN <= MAX
--nnodes 0 true => --nnodes 0 asks for less than one node; write N or MIN:MAX with numbers from 1
--nnodes=-1 true => --nnodes=-1 asks for less than one node; write N or MIN:MAX with numbers from 1
--nnodes=1:2:3 true => --nnodes=1:2:3 is not a number of nodes; write N or MIN:MAX
--nnodes=x true => --nnodes=x is not a number of nodes; write N or MIN:MAX
--nproc_per_node=0 true => --nproc_per_node=0 starts no worker; give a number from 1, or cpu, gpu or auto
--nproc-per-node -1 true => --nproc-per-node -1 starts no worker; give a number from 1, or cpu, gpu or auto
--nproc-per-node=99999999 true => --nproc-per-node=99999999 is more than a node may have; give a number up to 65536
--nproc-per-node=banana true => --nproc-per-node=banana is not a number of workers; give a number from 1, or cpu, gpu or auto
--nproc-per-node=gpu true => --nproc-per-node=gpu finds no NVIDIA GPU on this machine; give a number, cpu or auto
--node-rank=-1 true => --node-rank=-1 is not valid; give a whole number from 0
--nnodes=2 --master-addr=m --node-rank=2 true => node rank 2 is not among the nodes of --nnodes=2, which count from 0; correct one of the two
--nnodes=1:2 --rdzv-endpoint=0.0.0.0:29400 true => --rdzv-endpoint=0.0.0.0:29400: 0.0.0.0 is the wildcard address, which cannot be connected to; give the name or one address of the machine where the rendezvous is
--nnodes=2 --rdzv-endpoint=a:1,[::]:29400 true => --rdzv-endpoint=a:1,[::]:29400: :: is the wildcard address, which cannot be connected to; give the name or one address of the machine where the rendezvous is
--nnodes=2 --master-addr=224.0.0.1 --node-rank=1 true => --master-addr=224.0.0.1: 224.0.0.1 is a multicast or broadcast address, which cannot be connected to; give the name or one address of the machine where the rendezvous is
--nnodes=2 --rdzv-endpoint=h:1 --local-addr=0.0.0.0 true => --local-addr=0.0.0.0 is the wildcard address, which cannot be connected to; give an address of this machine that the other nodes reach
--rdzv-backend=etcd true => --rdzv-backend=etcd is not supported, and no etcd is needed; use c10d
--rdzv-backend=zeus true => --rdzv-backend=zeus is not a rendezvous backend; use c10d, static or muster
--rdzv-endpoint=h:99999 true => --rdzv-endpoint=h:99999 has a bad port; a port is a number from 0 to 65535
--rdzv-backend=static --rdzv-endpoint=h true => --rdzv-endpoint=h has no port; write HOST:PORT, with brackets around an IPv6 address
--nnodes=2 --rdzv-endpoint=h:0 true => --rdzv-endpoint=h:0 has port 0, which the other nodes of --nnodes=2 cannot know; choose a port
--rdzv-conf=join_timeout=0 true => --rdzv-conf=join_timeout=0 has a bad join_timeout; give it a number of seconds above 0
--token-fd=2 true => --token-fd=2 is not an open file descriptor of 3 or above, as in `--token-fd=3 3<FILE`
--insecure --token-file=t true => --insecure and --token-file exclude each other; drop one of them
--master-port=http true => --master-port=http has a bad port; a port is a number from 0 to 65535
--master-addr=h/x true => --master-addr=h/x has a bad host; write a name or an IP address
--max-restarts -1 true => --max-restarts -1 is not valid; give a whole number from 0
--shutdown-timeout=-5 true => --shutdown-timeout=-5 is not a number of seconds; give 0 or more, or inf
--health-port=node0 true => --health-port=node0 has no port; write HOST:PORT, with brackets around an IPv6 address
--http=node0:9400 true => --http=node0:9400 would send tokens over the network unencrypted; use a loopback address behind a TLS proxy
--restart-window=soon true => --restart-window=soon is not a number of seconds; give 0 or more
--restart-delay=9:3 true => --restart-delay=9:3 is not a delay; give seconds, or FIRST:LONGEST with FIRST <= LONGEST <= 86400
--no-progress-limit=-1 true => --no-progress-limit=-1 is not valid; give a whole number from 0
--straggler-threshold=-0.1 true => --straggler-threshold=-0.1 is not a fraction; give a number of 0 or more, such as 0.25
--straggler-threshold=nan true => --straggler-threshold=nan is not a fraction; give a number of 0 or more, such as 0.25
--no-retry-exit-codes=7-3 true => --no-retry-exit-codes=7-3 is not a list of exit codes; write numbers from 1 to 255 and ranges, such as 2,64-78
--scale-up=never true => --scale-up=never is not a valid choice; use now or next-restart
--hang-timeout=-1 true => --hang-timeout=-1 is not a number of seconds; give 0 or more
--liveness=heart true => --liveness=heart is not a valid choice; use beats or output
--hang-action=pray true => --hang-action=pray is not a valid choice; use restart, end or report
--hang-action=end true => --hang-action, --liveness and --hang-first-beat-timeout configure hang detection, which is off; also give --hang-timeout=SECONDS
--stack-command=pstack true => --stack-command=pstack does not say which process to inspect; put {pid} in its arguments, as in 'gdb -p {pid} -batch -ex bt'
--health-check-timeout=0 true => --health-check-timeout=0 is not a positive number of seconds
--leftovers=kill true => --leftovers=kill is not a valid choice; use wait, stop or keep
--exit-code=2 true => --exit-code=2 is not a valid choice; use torchrun or worker
-r 9 true => -r 9 is not a stream choice; write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or local ranks with theirs such as 0:3,1:2
--log-level=loud true => --log-level=loud is not a valid choice; use debug, info, warning or error
--nnodes=2 true => --nnodes=2 needs --rdzv-endpoint=HOST:PORT, the same on every node, or --master-addr and --node-rank
--nnodes=1:4 true => --nnodes=1:4 needs --rdzv-endpoint=HOST:PORT, the same on every node, or --master-addr and --node-rank
--nnodes=2 --master-port=0 true => --master-port=0 leaves the port open, which the other nodes of --nnodes=2 cannot know; choose a port
--standalone --nnodes=2 true => --standalone runs one node, but --nnodes=2 asks for more; drop one of them
--total-workers=0 true => --total-workers=0 is not valid; give a whole number from 1
--numa-binding=die true => --numa-binding=die is not a valid choice; use node, socket, exclusive or core-complex
--worker-store=me true => --worker-store=me is not a valid choice; use agent, worker or tunnel
--start-method=thread true => --start-method=thread is not a valid choice; use spawn, fork or forkserver
--signals-to-handle=SIGKILL true => --signals-to-handle=SIGKILL names SIGKILL, which cannot be handled; leave it out
--signals-to-handle=, true => --signals-to-handle=, is not a list of signals; write names such as SIGTERM,SIGINT
--monitor-interval=0 true => --monitor-interval=0 is not a positive number of seconds
--exit-barrier-timeout=x true => --exit-barrier-timeout=x is not a number of seconds; give 0 or more
--local-ranks-filter=0,a true => --local-ranks-filter=0,a is not a list of local ranks; write numbers from 0 with commas between
--logs-specs=mine true => --logs-specs=mine is a Python plug-in of torchrun's, which cannot be loaded here; use --log-dir, --redirects and --tee
--event-log-handler=console true => --event-log-handler=console is an event handler of torchrun's, which cannot be loaded here; use --event-log=FILE for programs, or --log-level=info
--print-completion=tcsh true => --print-completion=tcsh is not a valid choice; use bash, zsh or fish
-m --run-path x => --module and --run-path exclude each other: one names a module, the other a file; drop one of them
--run-path true => cannot run 'true': no such file
-m --no-python x => --module and --no-python exclude each other: a module is run by Python; drop one of them
--standalone => no script to run; write `muster run [flags] script [script args...]`
--standalone -- => no script to run; write `muster run [flags] script [script args...]`
no-such-script.py => cannot run 'no-such-script.py': no such file
/tmp => cannot run '/tmp': it is a directory without a __main__.py, which Python would run
--nprocs=2 true => unknown flag '--nprocs'; did you mean --nproc-per-node?
--num-nodes=2 true => unknown flag '--num-nodes'; did you mean --nnodes?
-standalone true => unknown flag '-standalone'; did you mean --standalone?
# "-nnodes=2 is not a number of workers"
-nnodes=2 true => unknown flag '-nnodes'; did you mean --nnodes?
-rdzv_id a true => unknown flag '-rdzv_id'; did you mean --rdzv-id?
--nproc-per-nod3=2 true => unknown flag '--nproc-per-nod3'; did you mean --nproc-per-node?
--rdvz_endpoint h true => unknown flag '--rdvz_endpoint'; did you mean --rdzv-endpoint?
-x true => unknown flag '-x'; `muster run --help` lists the flags; the script's own flags go after the script
--lr=0.1 train.py => unknown flag '--lr'; `muster run --help` lists the flags; the script's own flags go after the script
--standalone=1 true => '--standalone=1' gives a value to --standalone, which takes none; write it alone
--nnodes => '--nnodes' needs a value; write --nnodes=N|MIN:MAX
--role --standalone true => '--role' needs a value; write --role=NAME
)";
  for (const absl::string_view line : absl::StrSplit(kMistakes, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::vector<std::string> parts = absl::StrSplit(line, " => ");
    ASSERT_EQ(parts.size(), 2u) << line;
    EXPECT_EQ(Error(absl::StrSplit(parts[0], ' ')), parts[1]);
  }
  const ErrorCase cases[] = {
      {{"--role=a\tb", "true"},
       "--role=a\tb is not usable: role \"a\\tb\" has a control character"},
      {{"--rdzv-id=\xff", "true"}, "--rdzv-id=\xff is not usable: run id \"\\377\" is not UTF-8"},
      {{"--rdzv-endpoint=h h:1", "true"},
       "--rdzv-endpoint=h h:1 has a bad host; write HOST:PORT, with brackets around an IPv6 "
       "address"},
      {{"--stack-command=gdb -p {pid} -ex 'bt", "true"},
       "--stack-command=gdb -p {pid} -ex 'bt has a quote that is not closed"},
      {{}, "no script to run; write `muster run [flags] script [script args...]`"},
      // `muster run -m "$MODULE"`, without that variable, began a job whose workers failed.
      {{"-m", ""}, "the name of what is to be run is empty; was a variable not set?"},
      {{""}, "the name of what is to be run is empty; was a variable not set?"},
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
            "environment variable TORCH_ELASTIC_SHUTDOWN_TIMEOUT=soon is not a number of seconds; "
            "give 0 or more, or inf");
}

}  // namespace
}  // namespace muster::launcher
