// Command lines in jobs of Slurm's: what they mean without a further flag.
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/flags.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

using Args = std::vector<std::string>;

const Environment kStep = {{"SLURM_JOB_ID", "1234"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_JOB_NODELIST", "n[1-3]"},
                           {"SLURM_STEP_NODELIST", "n[1-3]"},
                           {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                           {"SLURM_NODEID", "2"},
                           {"SLURMD_NODENAME", "n3"}};

Environment With(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}
Environment Without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

ParsedRun ParseSlurmDefaults(Args args, const Environment& environment) {
  args.insert(args.end(), {"--no-python", "/bin/true"});
  return ParseRun(args, Dialect::kRun, environment, {.cpus = 6, .nvidia_devices = 0});
}
LaunchConfig SlurmDefaultsConfig(const Args& args, const Environment& environment) {
  ParsedRun parsed = ParseSlurmDefaults(args, environment);
  if (const auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->sentence;
  auto* const config = std::get_if<LaunchConfig>(&parsed);
  EXPECT_NE(config, nullptr) << "it is started on hosts";
  return config == nullptr ? LaunchConfig() : *config;
}
HostsRun OnHosts(const Args& args, const Environment& environment) {
  ParsedRun parsed = ParseSlurmDefaults(args, environment);
  if (const auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->sentence;
  auto* const run = std::get_if<HostsRun>(&parsed);
  EXPECT_NE(run, nullptr) << "it is a node";
  return run == nullptr ? HostsRun() : *run;
}
SlurmStep Step(const Args& args, const Environment& environment) {
  ParsedRun parsed = ParseSlurmDefaults(args, environment);
  if (const auto* error = std::get_if<UsageError>(&parsed)) ADD_FAILURE() << error->sentence;
  auto* const step = std::get_if<SlurmStep>(&parsed);
  EXPECT_NE(step, nullptr) << "it is no step that is to be started";
  return step == nullptr ? SlurmStep() : *step;
}

TEST(SlurmDefaultsTest, AStepNeedsNoFurtherFlag) {
  const LaunchConfig config = SlurmDefaultsConfig({}, kStep);
  EXPECT_EQ(config.mode, RendezvousMode::kEndpoint);
  EXPECT_EQ(config.min_nodes, 3);
  EXPECT_EQ(config.max_nodes, 3);
  EXPECT_EQ(config.endpoint.host, "n1");
  EXPECT_EQ(config.run_id, "1234.0");
  EXPECT_EQ(config.node_rank, 2);
  EXPECT_EQ(config.nproc_per_node, 1);
  EXPECT_EQ(SlurmDefaultsConfig({}, With(kStep, "SLURM_GPUS_ON_NODE", "4")).nproc_per_node, 4);
  EXPECT_EQ(SlurmDefaultsConfig({"--nproc-per-node=2"}, With(kStep, "SLURM_GPUS_ON_NODE", "4"))
                .nproc_per_node,
            2);
}

// "SLURM_GPUS_ON_NODE=8, my script sets CUDA_VISIBLE_DEVICES=3,5, and eight workers were started."
TEST(SlurmDefaultsTest, WorkersAreThoseOfSlurmsGpusThatTheUserLeaves) {
  const Environment eight = With(kStep, "SLURM_GPUS_ON_NODE", "8");
  const struct {
    const char* variable;
    const char* value;
    int workers;
  } rows[] = {{"CUDA_VISIBLE_DEVICES", "3,5", 2},
              {"CUDA_VISIBLE_DEVICES", " 3 , 5 ", 2},
              {"CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7", 8},
              {"CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb,GPU-cc", 3},
              {"CUDA_VISIBLE_DEVICES", "MIG-aa,MIG-bb", 2},
              {"CUDA_VISIBLE_DEVICES", "3,-1,5", 1},
              {"CUDA_VISIBLE_DEVICES", "", 1},
              {"CUDA_VISIBLE_DEVICES", "-1", 1},
              {"CUDA_VISIBLE_DEVICES", "NoDevFiles", 1},
              {"HIP_VISIBLE_DEVICES", "0,1,2", 3},
              {"ROCR_VISIBLE_DEVICES", "4,5", 2}};
  for (const auto& row : rows) {
    EXPECT_EQ(SlurmDefaultsConfig({}, With(eight, row.variable, row.value)).nproc_per_node,
              row.workers)
        << row.variable << "=" << row.value;
  }
  EXPECT_EQ(SlurmDefaultsConfig({"--devices=1-3"}, eight).nproc_per_node, 3);
  EXPECT_EQ(SlurmDefaultsConfig({"--nproc-per-node=4"}, With(eight, "CUDA_VISIBLE_DEVICES", "3,5"))
                .nproc_per_node,
            4);
  EXPECT_EQ(SlurmDefaultsConfig(
                {}, With(With(kStep, "SLURM_GPUS_ON_NODE", "2"), "CUDA_VISIBLE_DEVICES", "0,1,2,3"))
                .nproc_per_node,
            2)
      << "Slurm has given no more";
}

// Users had to find a port and the first host's name themselves if a job could do with fewer nodes.
TEST(SlurmDefaultsTest, ARangeOfNodesMeetsWhereSlurmSays) {
  const LaunchConfig config = SlurmDefaultsConfig({"--nnodes=2:8"}, kStep);
  EXPECT_EQ(config.endpoint, SlurmDefaultsConfig({}, kStep).endpoint);
  EXPECT_EQ(config.run_id, "1234.0");
  EXPECT_EQ(config.min_nodes, 2);
  EXPECT_EQ(config.max_nodes, 3) << "the step has no more";
  EXPECT_EQ(SlurmDefaultsConfig({"--nnodes=1:2"}, kStep).max_nodes, 2) << "the third is spare";
  EXPECT_EQ(SlurmDefaultsConfig({"--nnodes=2:3", "--rdzv-endpoint=n2:1"}, kStep).endpoint.host,
            "n2");
  const ParsedRun parsed = ParseSlurmDefaults({"--nnodes=4:8"}, kStep);
  ASSERT_TRUE(std::holds_alternative<UsageError>(parsed));
  EXPECT_EQ(std::get<UsageError>(parsed).sentence,
            "--nnodes=4:8 needs more nodes than the 3 of this step");
  const SlurmStep step = Step({"--nnodes=2:3"}, Without(kStep, "SLURM_STEP_ID"));
  EXPECT_EQ(step.nodes, 3);
  EXPECT_EQ(step.end_limit, std::chrono::seconds(0)) << "it goes on without a node";
}

// "--nnodes=1:4 needs --rdzv-endpoint", where `sbatch --nodes=1-4` had been given one node.
TEST(SlurmDefaultsTest, ARangeFitsAStepOfOneNode) {
  Environment one = With(kStep, "SLURM_STEP_NODELIST", "n1");
  one["SLURM_NODEID"] = "0";
  one["SLURM_STEP_TASKS_PER_NODE"] = "1";
  one["SLURMD_NODENAME"] = "n1";
  EXPECT_EQ(SlurmDefaultsConfig({"--nnodes=1:4"}, one).max_nodes, 1);
  const ParsedRun parsed = ParseSlurmDefaults({"--nnodes=2:4"}, one);
  ASSERT_TRUE(std::holds_alternative<UsageError>(parsed));
  EXPECT_EQ(std::get<UsageError>(parsed).sentence,
            "--nnodes=2:4 needs more nodes than the 1 of this step");
}

// Two steps on the same hosts must not take each other for their own.
TEST(SlurmDefaultsTest, EveryStepHasAPortOfItsOwn) {
  const auto port = SlurmDefaultsConfig({}, kStep).endpoint.port;
  EXPECT_EQ(SlurmDefaultsConfig({}, With(kStep, "SLURM_NODEID", "0")).endpoint.port, port);
  EXPECT_NE(SlurmDefaultsConfig({}, With(kStep, "SLURM_STEP_ID", "1")).endpoint.port, port);
  EXPECT_NE(SlurmDefaultsConfig({}, With(kStep, "SLURM_RESTART_COUNT", "1")).endpoint.port, port);
  EXPECT_GE(port, 20'000);
  EXPECT_LT(port, 30'000);
}

TEST(SlurmDefaultsTest, WhatTheUserSaysCounts) {
  EXPECT_EQ(SlurmDefaultsConfig({"--standalone"}, kStep).max_nodes, 1);
  EXPECT_EQ(SlurmDefaultsConfig({"--nnodes=1"}, kStep).mode, RendezvousMode::kStandalone);
  const LaunchConfig own = SlurmDefaultsConfig({"--nnodes=2", "--rdzv-endpoint=n2:1"}, kStep);
  EXPECT_EQ(own.endpoint.host, "n2");
  EXPECT_EQ(own.max_nodes, 2);
  EXPECT_EQ(SlurmDefaultsConfig({"--rdzv-id=mine"}, kStep).run_id, "mine");
  EXPECT_EQ(SlurmDefaultsConfig({}, With(kStep, "MUSTER_SLURM", "0")).max_nodes, 1);
}

TEST(SlurmDefaultsTest, SeveralProcessesOnANodeAreAMistakeWhereNodesMeet) {
  const Environment two = With(kStep, "SLURM_STEP_TASKS_PER_NODE", "2(x3)");
  const ParsedRun parsed = ParseSlurmDefaults({}, two);
  ASSERT_TRUE(std::holds_alternative<UsageError>(parsed));
  EXPECT_THAT(std::get<UsageError>(parsed).sentence,
              HasSubstr("srun has started 2 processes on a node"));
  // A sweep.
  EXPECT_EQ(SlurmDefaultsConfig({}, With(two, "SLURM_STEP_NODELIST", "n1")).mode,
            RendezvousMode::kStandalone);
}

TEST(SlurmDefaultsTest, InAnAllocationTheJobIsAStepOfAllItsHosts) {
  const Environment batch = Without(kStep, "SLURM_STEP_ID");
  const SlurmStep step = Step({"--nproc-per-node=2"}, batch);
  EXPECT_EQ(step.nodes, 3);
  EXPECT_EQ(step.dialect, "run");
  EXPECT_THAT(step.args, testing::ElementsAre("--nproc-per-node=2", "--no-python", "/bin/true"));
  EXPECT_TRUE(step.makes_token);
  EXPECT_EQ(step.end_limit, std::chrono::seconds(75));
  EXPECT_EQ(Step({"--shutdown-timeout=inf"}, batch).end_limit, std::chrono::seconds(0));
  EXPECT_FALSE(Step({"--token-file=/home/me/token"}, batch).makes_token);
  EXPECT_FALSE(Step({"--insecure"}, batch).makes_token);
  EXPECT_THAT(Step({"--export=A=1"}, batch).environment, testing::ElementsAre("A=1"));
  EXPECT_EQ(SlurmDefaultsConfig({"--standalone"}, batch).max_nodes, 1);
  EXPECT_EQ(SlurmDefaultsConfig({"--dry-run"}, batch).max_nodes, 1);
}

TEST(SlurmDefaultsTest, WhoNamesAnotherWayToTheHostsOfAnAllocationHasIt) {
  const Environment batch = With(Without(kStep, "SLURM_STEP_ID"), "SLURM_GPUS_ON_NODE", "8");
  const std::string with = "--launch-with=rsh {host} {command}";
  const HostsRun run = OnHosts({with}, batch);
  ASSERT_EQ(run.hosts.size(), 3u);
  EXPECT_EQ(run.hosts[0].name, "n1");
  EXPECT_EQ(run.hosts[2].workers, 8);
  EXPECT_EQ(run.run_id, "1234");
  EXPECT_EQ(OnHosts({with, "--nproc-per-node=2"}, batch).hosts[2].workers, std::nullopt);
}

TEST(SlurmDefaultsTest, OneNodeOfAStepShowsWhatAllHaveAlike) {
  EXPECT_FALSE(SlurmDefaultsConfig({}, kStep).shows_shared_report);
  EXPECT_TRUE(SlurmDefaultsConfig({}, With(kStep, "SLURM_NODEID", "0")).shows_shared_report);
}

TEST(SlurmDefaultsTest, OnTheOnlyHostOfAnAllocationItIsANode) {
  const Environment one = With(Without(kStep, "SLURM_STEP_ID"), "SLURM_JOB_NODELIST", "n3");
  EXPECT_EQ(SlurmDefaultsConfig({}, one).mode, RendezvousMode::kStandalone);
  EXPECT_EQ(Step({}, Without(one, "SLURMD_NODENAME")).nodes, 1);
}

}  // namespace
}  // namespace muster::launcher
