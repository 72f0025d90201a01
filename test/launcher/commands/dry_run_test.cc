// What --dry-run prints instead of running.
#include "launcher/views/config_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "launcher/cli/launch_config.h"
#include "launcher/run/rank_layout.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

LaunchConfig SomeConfig() {
  LaunchConfig config;
  config.program = {.name = "train.py", .argv = {"/usr/bin/python3", "-u", "train.py", "it's"}};
  config.nproc_per_node = 2;
  config.run_id = "r1";
  return config;
}

std::string DryRun(const LaunchConfig& config, const Environment& own = {}) {
  NodeBase base;
  base.environment = BaseEnvironment(config, own);
  return DryRunText(
      config, own,
      LayOutRanks(config, SupposedAssignment(config), base, SupposedLogs(config, "/tmp")));
}

TEST(DryRunTest, EachWorkerIsACommandThatAShellWouldRun) {
  const std::string text = DryRun(SomeConfig(), {{"HOME", "/root"}});
  EXPECT_THAT(text, HasSubstr("# run id r1, 2 workers on this node\n\n# local rank 0\n"));
  EXPECT_THAT(text, HasSubstr("\nRANK=1 \\\n"));
  EXPECT_THAT(text, HasSubstr("\nMASTER_ADDR=127.0.0.1 \\\nMASTER_PORT='(decided at start)' \\\n"));
  EXPECT_THAT(text, HasSubstr("\n/usr/bin/python3 -u train.py 'it'\\''s'\n# stdout: console\n"));
  // What it has anyway is not told.
  EXPECT_THAT(text, testing::Not(HasSubstr("HOME")));
}

TEST(DryRunTest, SecondOfTwoNodesWithStaticRanksIsKnownWhole) {
  LaunchConfig config = SomeConfig();
  config.mode = RendezvousMode::kStatic;
  config.endpoint = {"10.0.0.1", 29500};
  config.min_nodes = config.max_nodes = 2;
  config.node_rank = 1;
  config.tee.all = Streams::kBoth;
  config.log_dir = "/logs";
  const std::string text = DryRun(config);
  EXPECT_THAT(text, HasSubstr("# ranks as if all 2 nodes had come"));
  EXPECT_THAT(text, HasSubstr("\nRANK=3 \\\n"));
  EXPECT_THAT(text, HasSubstr("\nMASTER_PORT=29500 \\\n"));
  EXPECT_THAT(text, HasSubstr("# stdout: console with [default1]: and "
                              "/logs/r1_XXXXXXXX/attempt_0/1/stdout.log\n"));
}

// "My script takes the local rank from TORCHELASTIC_ERROR_FILE's directory, as under torchrun, and
// finds attempt_0 there."
TEST(DryRunTest, ErrorFileOfARunWithoutLogsLiesWhereTorchrunHasIt) {
  EXPECT_THAT(DryRun(SomeConfig()),
              HasSubstr("TORCHELASTIC_ERROR_FILE="
                        "/tmp/muster_XXXXXXXX/r1_XXXXXXXX/attempt_0/1/error.json \\\n"));
}

TEST(DryRunTest, BoundCpusAreShown) {
  LaunchConfig config = SomeConfig();
  auto specs = LayOutRanks(config, SupposedAssignment(config), {}, SupposedLogs(config, "/tmp"));
  specs[0].cpus = {0, 1, 2, 8};
  EXPECT_THAT(DryRunText(config, {}, specs), HasSubstr("# CPUs: 0-2,8\n"));
}

TEST(PrintConfigTest, IsJsonThatSaysHowTheCommandLineWasUnderstood) {
  LaunchConfig config = SomeConfig();
  config.shutdown_timeout = std::chrono::milliseconds::max();
  config.redirects.by_local_rank = {{1, Streams::kBoth}};
  config.numa_binding = NumaMode::kExclusive;
  config.program.argv.push_back("\xff");
  const auto json = nlohmann::json::parse(ConfigText(config, {}));
  EXPECT_EQ(json["nproc_per_node"], 2);
  EXPECT_EQ(json["nnodes"]["max"], 1);
  EXPECT_EQ(json["rendezvous"], "standalone");
  EXPECT_TRUE(json["endpoint"].is_null());
  EXPECT_EQ(json["shutdown_timeout"], "inf");
  EXPECT_EQ(json["timeouts"]["join"], 600.0);
  EXPECT_EQ(json["redirects"]["1"], 3);
  EXPECT_EQ(json["numa_binding"], "exclusive");
  EXPECT_EQ(json["signals_to_handle"][0], "SIGTERM");
  EXPECT_EQ(json["command"][2], "train.py");
}

}  // namespace
}  // namespace muster::launcher
