// Checks every variable that a worker gets, in the situations that give it different values.
#include "launcher/run/rank_layout.h"

#include <csignal>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/launch_config.h"

namespace muster::launcher {
namespace {

using rendezvous::Assignment;
using testing::IsSupersetOf;
using testing::Pair;
using worker::WorkerSpec;

AttemptLogs LogsFor(int nproc) {
  AttemptLogs logs{.directory = "/logs/a", .ranks = {}};
  for (int i = 0; i < nproc; ++i) {
    const std::string dir = "/logs/a/" + std::to_string(i);
    logs.ranks.push_back({dir, dir + "/stdout.log", dir + "/stderr.log", dir + "/error.json"});
  }
  return logs;
}

LaunchConfig ConfigFor(int nproc) {
  LaunchConfig config;
  config.program = {.name = "train", .argv = {"/bin/train"}};
  config.nproc_per_node = nproc;
  return config;
}

Environment EnvOf(const WorkerSpec& spec) {
  std::vector<const char*> block;
  for (const std::string& entry : *spec.common_env) block.push_back(entry.c_str());
  for (const std::string& entry : spec.env) block.push_back(entry.c_str());
  block.push_back(nullptr);
  return ReadEnvironment(block.data());
}

// A node among others, the first of whose ranks is `base_rank`.
Assignment PlaceOf(int group_rank, int nodes, int base_rank, int world_size) {
  return {.run_id = "job1",
          .group_rank = group_rank,
          .group_world_size = nodes,
          .base_rank = base_rank,
          .world_size = world_size,
          .role_base_rank = base_rank,
          .role_world_size = world_size,
          .master_addr = "10.0.0.1",
          .master_port = 29501};
}

TEST(RankLayoutTest, SingleNodeHasExactlyTorchrunsEnvironment) {
  Assignment assignment = PlaceOf(0, /*nodes=*/1, 0, /*world_size=*/2);
  assignment.max_restarts = 3;
  const NodeBase base{.environment = BaseEnvironment(ConfigFor(2), {{"HOME", "/root"}}),
                      .host = "node0",
                      .cpus = {},
                      .timer_file = ""};
  const auto specs = LayOutRanks(ConfigFor(2), assignment, base, LogsFor(2));
  ASSERT_EQ(specs.size(), 2u);
  const Environment expected = {
      {"HOME", "/root"},
      {"RANK", "1"},
      {"LOCAL_RANK", "1"},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"WORLD_SIZE", "2"},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", "1"},
      {"ROLE_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "29501"},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "job1"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/a/1/error.json"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"OMP_NUM_THREADS", "1"},
  };
  EXPECT_EQ(EnvOf(specs[1]), expected);
  EXPECT_EQ(specs[1].common_env->size() + specs[1].env.size(), expected.size());
  EXPECT_EQ(EnvOf(specs[0])["RANK"], "0");
  EXPECT_EQ(EnvOf(specs[0])["TORCHELASTIC_ERROR_FILE"], "/logs/a/0/error.json");
  EXPECT_EQ(specs[0].directory, "/logs/a/0");
}

// "A run inside a worker of another job asked that job's rendezvous."
TEST(RankLayoutTest, RendezvousIsNamedWhereItHasAPort) {
  NodeBase base{.environment = {{"MUSTER_RDZV_ENDPOINT", "other:1"}, {"MUSTER_ROUND", "9"}}};
  Environment none = EnvOf(LayOutRanks(ConfigFor(1), {.round = 2}, base, LogsFor(1)).at(0));
  EXPECT_FALSE(none.contains("MUSTER_RDZV_ENDPOINT"));
  EXPECT_FALSE(none.contains("MUSTER_ROUND"));

  base.rendezvous = "node0:29400";
  Environment named = EnvOf(LayOutRanks(ConfigFor(1), {.round = 2}, base, LogsFor(1)).at(0));
  EXPECT_EQ(named["MUSTER_RDZV_ENDPOINT"], "node0:29400");
  EXPECT_EQ(named["MUSTER_ROUND"], "2");
}

// An inherited one is that of the worker in which this run was started.
TEST(RankLayoutTest, EachWorkerHasAFlightLogOfItsOwnOrNone) {
  const NodeBase base{
      .environment = {{"MUSTER_FLIGHT_LOG", "/proc/1/fd/1"}, {"MUSTER_FLIGHT_OFFSET", "16384"}}};
  AttemptLogs logs = LogsFor(2);
  for (const worker::WorkerSpec& spec : LayOutRanks(ConfigFor(2), {}, base, logs)) {
    EXPECT_FALSE(EnvOf(spec).contains("MUSTER_FLIGHT_LOG"));
    EXPECT_FALSE(EnvOf(spec).contains("MUSTER_FLIGHT_OFFSET"));
  }
  logs.flight_log = "/proc/7/fd/9";
  logs.flight_offsets = {0, 65536};
  const auto specs = LayOutRanks(ConfigFor(2), {}, base, logs);
  EXPECT_EQ(EnvOf(specs[0])["MUSTER_FLIGHT_LOG"], "/proc/7/fd/9");
  EXPECT_EQ(EnvOf(specs[0])["MUSTER_FLIGHT_OFFSET"], "0");
  EXPECT_EQ(EnvOf(specs[1])["MUSTER_FLIGHT_LOG"], "/proc/7/fd/9");
  EXPECT_EQ(EnvOf(specs[1])["MUSTER_FLIGHT_OFFSET"], "65536");
}

TEST(RankLayoutTest, SecondOfTwoNodesCountsOnFromTheFirst) {
  Assignment assignment = PlaceOf(1, /*nodes=*/2, 2, /*world_size=*/4);
  assignment.round = 4;
  assignment.restart_count = 1;
  assignment.max_restarts = 2;
  const auto specs = LayOutRanks(ConfigFor(2), assignment, {}, LogsFor(2));
  ASSERT_EQ(specs.size(), 2u);
  for (int local_rank = 0; local_rank < 2; ++local_rank) {
    const WorkerSpec& spec = specs[static_cast<std::size_t>(local_rank)];
    EXPECT_EQ(spec.rank, 2 + local_rank);
    EXPECT_EQ(spec.local_rank, local_rank);
    Environment environment = EnvOf(spec);
    EXPECT_EQ(environment["RANK"], std::to_string(2 + local_rank));
    EXPECT_EQ(environment["LOCAL_RANK"], std::to_string(local_rank));
    EXPECT_THAT(environment,
                IsSupersetOf({Pair("GROUP_RANK", "1"), Pair("GROUP_WORLD_SIZE", "2"),
                              Pair("WORLD_SIZE", "4"), Pair("MASTER_ADDR", "10.0.0.1"),
                              Pair("MASTER_PORT", "29501"), Pair("TORCHELASTIC_RESTART_COUNT", "1"),
                              Pair("TORCHELASTIC_MAX_RESTARTS", "2")}));
  }
}

TEST(RankLayoutTest, NodesWithDifferentNumbersOfWorkersShareOneWorld) {
  // Two nodes: one worker on the first, three on the second.
  const Assignment first = PlaceOf(0, /*nodes=*/2, 0, /*world_size=*/4);
  const Assignment second = PlaceOf(1, /*nodes=*/2, 1, /*world_size=*/4);
  std::vector<std::string> ranks;
  for (const auto& [nproc, assignment] : {std::pair(1, first), std::pair(3, second)}) {
    for (const WorkerSpec& spec : LayOutRanks(ConfigFor(nproc), assignment, {}, LogsFor(nproc))) {
      Environment environment = EnvOf(spec);
      EXPECT_EQ(environment["LOCAL_WORLD_SIZE"], std::to_string(nproc));
      EXPECT_EQ(environment["WORLD_SIZE"], "4");
      ranks.push_back(environment["RANK"]);
    }
  }
  EXPECT_EQ(ranks, (std::vector<std::string>{"0", "1", "2", "3"}));
}

TEST(RankLayoutTest, RolesHaveRanksOfTheirOwn) {
  LaunchConfig config = ConfigFor(2);
  config.role = "reader";
  config.tee.all = Streams::kStdout;
  Assignment assignment = PlaceOf(2, /*nodes=*/3, 6, /*world_size=*/8);
  assignment.role_base_rank = 2;
  assignment.role_world_size = 4;
  const auto specs = LayOutRanks(config, assignment, {}, LogsFor(2));
  EXPECT_EQ(specs[1].role, "reader");
  EXPECT_THAT(EnvOf(specs[1]),
              IsSupersetOf({Pair("ROLE_NAME", "reader"), Pair("RANK", "7"), Pair("ROLE_RANK", "3"),
                            Pair("ROLE_WORLD_SIZE", "4")}));
  EXPECT_EQ(specs[1].stdout_spec.prefix, "[reader1]:");
}

TEST(RankLayoutTest, RanksOfTheAgentsOwnEnvironmentAreReplacedAndDefaultsAreNot) {
  const Environment own = {{"RANK", "9"},
                           {"WORLD_SIZE", "9"},
                           {"MASTER_ADDR", "old"},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                           {"OMP_NUM_THREADS", "8"},
                           {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"},
                           {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM"},
                           {"CUDA_VISIBLE_DEVICES", "4,5"}};
  const Assignment assignment{.world_size = 2, .master_addr = "a"};
  const NodeBase base{
      .environment = BaseEnvironment(ConfigFor(2), own), .host = "", .cpus = {}, .timer_file = ""};
  EXPECT_THAT(
      EnvOf(LayOutRanks(ConfigFor(2), assignment, base, LogsFor(2))[0]),
      IsSupersetOf({Pair("RANK", "0"), Pair("WORLD_SIZE", "2"), Pair("MASTER_ADDR", "a"),
                    Pair("TORCHELASTIC_USE_AGENT_STORE", "False"), Pair("OMP_NUM_THREADS", "8"),
                    Pair("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"),
                    Pair("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"),
                    Pair("CUDA_VISIBLE_DEVICES", "4,5")}));
}

TEST(RankLayoutTest, OneWorkerMayUseAllCores) {
  EXPECT_EQ(BaseEnvironment(ConfigFor(1), {}).count("OMP_NUM_THREADS"), 0u);
}

TEST(RankLayoutTest, ChosenDevicesAreTheWorkersAlone) {
  LaunchConfig config = ConfigFor(2);
  config.devices = {"4", "5"};
  EXPECT_EQ(BaseEnvironment(config, {{"CUDA_VISIBLE_DEVICES", "3,4,5"}})["CUDA_VISIBLE_DEVICES"],
            "4,5");
}

TEST(RankLayoutTest, VirtualLocalRankGivesEachWorkerOneDeviceAndRankZero) {
  LaunchConfig config = ConfigFor(2);
  config.virtual_local_rank = true;
  config.program.argv = {"/bin/train", "--local-rank=${local_rank}"};
  for (const auto& [visible, own] : {std::pair("4, 5", "5"), std::pair("GPU-a,MIG-b", "MIG-b")}) {
    NodeBase base;
    base.environment["CUDA_VISIBLE_DEVICES"] = visible;
    const auto specs = LayOutRanks(config, {.world_size = 2}, base, LogsFor(2));
    Environment environment = EnvOf(specs[1]);
    EXPECT_EQ(environment["CUDA_VISIBLE_DEVICES"], own);
    EXPECT_EQ(environment["LOCAL_RANK"], "0");
    EXPECT_EQ(environment["RANK"], "1");
    EXPECT_EQ(environment["TORCHELASTIC_ERROR_FILE"], "/logs/a/1/error.json");
  }
  // Nothing said: the index itself.
  EXPECT_EQ(EnvOf(LayOutRanks(config, {}, {}, LogsFor(2))[1])["CUDA_VISIBLE_DEVICES"], "1");
}

TEST(RankLayoutTest, StoreOfTheAgentIsAnnounced) {
  const auto specs =
      LayOutRanks(ConfigFor(1), {.master_port = 7, .agent_store = true}, {}, LogsFor(1));
  EXPECT_EQ(EnvOf(specs[0])["TORCHELASTIC_USE_AGENT_STORE"], "True");
  EXPECT_EQ(EnvOf(specs[0])["MASTER_PORT"], "7");
}

TEST(RankLayoutTest, SignalsAndTimerFileAreTold) {
  LaunchConfig config = ConfigFor(1);
  config.stop_signals = {SIGUSR1, SIGTERM};
  NodeBase base;
  base.timer_file = "/tmp/timer";
  Environment environment = EnvOf(LayOutRanks(config, {}, base, LogsFor(1))[0]);
  EXPECT_EQ(environment["TORCHELASTIC_SIGNALS_TO_HANDLE"], "SIGUSR1,SIGTERM");
  EXPECT_EQ(environment["TORCHELASTIC_TIMER_FILE"], "/tmp/timer");
  EXPECT_EQ(EnvOf(LayOutRanks(config, {}, {}, LogsFor(1))[0]).count("TORCHELASTIC_TIMER_FILE"), 0u);
}

TEST(RankLayoutTest, BoundWorkersGetTheirCpus) {
  NodeBase base;
  base.cpus = {{0, 1}, {2, 3}};
  const auto specs = LayOutRanks(ConfigFor(2), {}, base, LogsFor(2));
  EXPECT_THAT(specs[1].cpus, testing::ElementsAre(2, 3));
}

TEST(RankLayoutTest, PrefixTemplateIsFilledInButForWhatIsNotKnownYet) {
  LaunchConfig config = ConfigFor(2);
  config.tee.all = Streams::kBoth;
  config.prefix_template = "${hostname} $role_name:${rank}/${local_rank} ${pid} ${time} $$ ${x}|";
  NodeBase base;
  base.host = "node7";
  const auto specs = LayOutRanks(config, {.base_rank = 4}, base, LogsFor(2));
  EXPECT_EQ(specs[1].stderr_spec.prefix, "node7 default:5/1 ${pid} ${time} $ ${x}|");
}

TEST(RankLayoutTest, FilteredRanksAreNotShownButKeepTheirFiles) {
  LaunchConfig config = ConfigFor(3);
  config.local_ranks_filter = {1};
  config.tee.by_local_rank = {{2, Streams::kBoth}};
  const auto specs = LayOutRanks(config, {}, {}, LogsFor(3));
  EXPECT_FALSE(specs[0].stdout_spec.to_console);
  EXPECT_EQ(specs[0].stdout_spec.file, "");
  EXPECT_TRUE(specs[1].stdout_spec.to_console);
  EXPECT_FALSE(specs[2].stdout_spec.to_console);
  EXPECT_EQ(specs[2].stdout_spec.file, "/logs/a/2/stdout.log");
}

TEST(RankLayoutTest, FiltersAreForTeedStreamsAlone) {
  LaunchConfig config = ConfigFor(2);
  config.stdout_filters = {"loss"};
  config.tee.by_local_rank = {{1, Streams::kBoth}};
  AttemptLogs logs = LogsFor(2);
  logs.filtered_stdout_log = "/logs/a/filtered_stdout.log";
  const auto specs = LayOutRanks(config, {}, {}, logs);
  EXPECT_TRUE(specs[0].stdout_spec.filters.empty());
  EXPECT_THAT(specs[1].stdout_spec.filters, testing::ElementsAre("loss"));
  EXPECT_EQ(specs[1].stdout_spec.filtered_file, "/logs/a/filtered_stdout.log");
  EXPECT_TRUE(specs[1].stderr_spec.filters.empty());
}

TEST(RankLayoutTest, LocalRankMacroIsReplacedInEachWorkersArguments) {
  LaunchConfig config = ConfigFor(2);
  config.program.argv = {"/bin/${local_rank}", "--local-rank=${local_rank}", "$local_rank", "$$",
                         "${rank}"};
  const auto specs = LayOutRanks(config, Assignment{}, {}, LogsFor(2));
  EXPECT_THAT(specs[1].argv, testing::ElementsAre("/bin/${local_rank}", "--local-rank=1",
                                                  "$local_rank", "$$", "${rank}"));
}

TEST(RankLayoutTest, OutputGoesWhereRedirectsAndTeeSay) {
  LaunchConfig config = ConfigFor(4);
  config.redirects.by_local_rank = {{1, Streams::kBoth}, {3, Streams::kBoth}};
  config.tee.by_local_rank = {{2, Streams::kBoth}, {3, Streams::kStderr}};
  const auto specs = LayOutRanks(config, Assignment{}, {}, LogsFor(4));

  // Neither: stdout is the agent's own, stderr passes through so that its end can be shown.
  EXPECT_EQ(specs[0].stdout_spec.file, "");
  EXPECT_TRUE(specs[0].stdout_spec.to_console);
  EXPECT_FALSE(specs[0].stdout_spec.keep_tail);
  EXPECT_EQ(specs[0].stderr_spec.file, "");
  EXPECT_TRUE(specs[0].stderr_spec.to_console);
  EXPECT_TRUE(specs[0].stderr_spec.keep_tail);
  EXPECT_EQ(specs[0].stderr_spec.prefix, "");
  // Redirected: the file alone.
  EXPECT_EQ(specs[1].stdout_spec.file, "/logs/a/1/stdout.log");
  EXPECT_FALSE(specs[1].stdout_spec.to_console);
  EXPECT_EQ(specs[1].stderr_spec.file, "/logs/a/1/stderr.log");
  EXPECT_FALSE(specs[1].stderr_spec.keep_tail);
  // Tee'd: both, with a prefix on the console.
  EXPECT_EQ(specs[2].stdout_spec.file, "/logs/a/2/stdout.log");
  EXPECT_TRUE(specs[2].stdout_spec.to_console);
  EXPECT_EQ(specs[2].stdout_spec.prefix, "[default2]:");
  // Tee wins over redirect, stream by stream.
  EXPECT_FALSE(specs[3].stdout_spec.to_console);
  EXPECT_TRUE(specs[3].stderr_spec.to_console);
  EXPECT_EQ(specs[3].stderr_spec.prefix, "[default3]:");
}

TEST(RankLayoutTest, LinesMayHaveTheirPrefixWithoutBeingTeed) {
  LaunchConfig config = ConfigFor(2);
  config.prefix_lines = true;
  config.stdout_filters = {"loss"};
  config.redirects.by_local_rank = {{1, Streams::kBoth}};
  const auto specs = LayOutRanks(config, Assignment{}, {}, LogsFor(2));
  EXPECT_EQ(specs[0].stdout_spec.prefix, "[default0]:");
  EXPECT_EQ(specs[0].stderr_spec.prefix, "[default0]:");
  EXPECT_EQ(specs[0].stdout_spec.file, "");
  EXPECT_TRUE(specs[0].stdout_spec.filters.empty());
  EXPECT_FALSE(specs[1].stdout_spec.to_console);
}

TEST(RankLayoutTest, WithoutLogsAllOutputStaysOnTheConsole) {
  LaunchConfig config = ConfigFor(2);
  config.redirects.by_local_rank = {{0, Streams::kBoth}};
  config.tee.by_local_rank = {{1, Streams::kBoth}};
  const AttemptLogs off{.directory = "", .ranks = {{}, {}}};
  const auto specs = LayOutRanks(config, Assignment{}, {}, off);
  EXPECT_EQ(specs[0].stderr_spec.file, "");
  EXPECT_TRUE(specs[0].stderr_spec.to_console);
  EXPECT_TRUE(specs[0].stderr_spec.keep_tail);
  EXPECT_TRUE(specs[1].stdout_spec.to_console);
  EXPECT_EQ(specs[1].stdout_spec.prefix, "[default1]:");
  EXPECT_EQ(specs[0].error_file, "");
  EXPECT_EQ(EnvOf(specs[0])["TORCHELASTIC_ERROR_FILE"], "");
}

}  // namespace
}  // namespace muster::launcher
