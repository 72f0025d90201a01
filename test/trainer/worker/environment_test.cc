#include "trainer/worker/launcher_link.h"

#include <gtest/gtest.h>

#include <map>

namespace muster::trainer {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<Environment> Read(const Variables& variables) {
  return ReadEnvironment([&variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(EnvironmentTest, WithoutALauncherIsAWorldOfOne) {
  const absl::StatusOr<Environment> env = Read({});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(*env, Environment());
}

TEST(EnvironmentTest, ReadsWhatTorchrunExports) {
  const absl::StatusOr<Environment> env = Read({{"RANK", "5"},
                                                {"WORLD_SIZE", "8"},
                                                {"LOCAL_RANK", "1"},
                                                {"LOCAL_WORLD_SIZE", "4"},
                                                {"MASTER_ADDR", "10.0.0.1"},
                                                {"MASTER_PORT", "29500"},
                                                {"TORCHELASTIC_RESTART_COUNT", "2"},
                                                {"TORCHELASTIC_RUN_ID", "night-7"},
                                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                {"GLOO_SOCKET_IFNAME", "eth1"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(*env, (Environment{.rank = 5,
                               .world_size = 8,
                               .local_rank = 1,
                               .local_world_size = 4,
                               .has_local_rank = true,
                               .master_addr = "10.0.0.1",
                               .master_port = 29500,
                               .agent_store = true,
                               .restart_count = 2,
                               .run_id = "night-7",
                               .gloo_interface = "eth1"}));
}

// A lost node costs no restart, and yet other workers ran before those of the next round.
TEST(EnvironmentTest, KnowsWhetherOtherWorkersHaveRunBefore) {
  EXPECT_FALSE(Environment().restarted());
  EXPECT_TRUE(Environment{.restart_count = 1}.restarted());
  const absl::StatusOr<Environment> env = Read({{"MUSTER_ROUND", "1"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->restart_count, 0);
  EXPECT_TRUE(env->restarted());
}

TEST(EnvironmentTest, LearnsWhereBeatsGo) {
  const absl::StatusOr<Environment> env = Read({{"MUSTER_BEAT_SOCKET", "/run/job/beats"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->beat_socket, "/run/job/beats");
}

TEST(EnvironmentTest, LearnsWhereTheLauncherReadsItsOperations) {
  absl::StatusOr<Environment> env =
      Read({{"MUSTER_FLIGHT_LOG", "/proc/7/fd/9"}, {"MUSTER_FLIGHT_OFFSET", "32768"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->flight_log, "/proc/7/fd/9");
  EXPECT_EQ(env->flight_offset, 32768);
  // Not fatal to the training.
  env = Read({{"MUSTER_FLIGHT_LOG", "/proc/7/fd/9"}, {"MUSTER_FLIGHT_OFFSET", "x"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->flight_log, "");
}

TEST(EnvironmentTest, OnlyPythonsTrueMeansTheAgentServesTheStore) {
  for (const char* text : {"False", "true", "1", ""}) {
    const absl::StatusOr<Environment> env = Read({{"TORCHELASTIC_USE_AGENT_STORE", text}});
    ASSERT_TRUE(env.ok()) << env.status();
    EXPECT_FALSE(env->agent_store) << text;
  }
}

TEST(EnvironmentTest, RefusesInOneSentence) {
  const Variables good = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};
  ASSERT_TRUE(Read(good).ok());
  struct Case {
    const char* name;
    const char* value;
    const char* sentence;
  };
  const Case cases[] = {
      {"RANK", "two", "RANK=two is not a whole number"},
      {"RANK", "1.5", "RANK=1.5 is not a whole number"},
      {"RANK", "99999999999", "RANK=99999999999 is not a whole number"},
      {"RANK", "-1", "RANK=-1 is not between 0 and 2147483647"},
      {"RANK", "2", "RANK=2 is not below WORLD_SIZE=2"},
      {"RANK", "", "WORLD_SIZE is set but RANK is not"},
      {"WORLD_SIZE", "0", "WORLD_SIZE=0 is not between 1 and 2147483647"},
      {"WORLD_SIZE", "", "RANK is set but WORLD_SIZE is not"},
      {"MASTER_ADDR", "", "WORLD_SIZE=2 needs MASTER_ADDR and MASTER_PORT"},
      {"MASTER_PORT", "", "WORLD_SIZE=2 needs MASTER_ADDR and MASTER_PORT"},
      {"MASTER_PORT", "65536", "MASTER_PORT=65536 is not between 1 and 65535"},
      {"MASTER_PORT", "http", "MASTER_PORT=http is not a whole number"},
      {"LOCAL_RANK", "x", "LOCAL_RANK=x is not a whole number"},
      {"TORCHELASTIC_RESTART_COUNT", "-2",
       "TORCHELASTIC_RESTART_COUNT=-2 is not between 0 and 2147483647"},
  };
  for (const Case& bad : cases) {
    Variables variables = good;
    variables[bad.name] = bad.value;
    const absl::Status status = Read(variables).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), bad.sentence);
  }
}

}  // namespace
}  // namespace muster::trainer
