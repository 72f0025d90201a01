// muster-train reports its steps, so that a slow rank shows up.
#include <chrono>
#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/e2e_fixture.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using Json = nlohmann::json;

// Processes that load LibTorch, on a machine that may have one slow core.
constexpr std::chrono::seconds kTrainingStepsDeadline(240);

class TrainingStepsTest : public E2eTest, public testing::WithParamInterface<std::string> {
 protected:
  // From `muster status --json`; null if it has reported nothing.
  static Json Rank(const Daemon& daemon, int rank) {
    Command status({MusterPath(), "status", "--rdzv-endpoint", daemon.endpoint, "--json"});
    EXPECT_EQ(status.Wait(), 0) << status.err();
    const Json jobs = Json::parse(status.out(), nullptr, false);
    if (!jobs.is_array() || jobs.empty()) return nullptr;
    for (const Json& node : jobs[0]["nodes"]) {
      for (const Json& one : node["ranks"]) {
        if (one["rank"] == rank) return one;
      }
    }
    return nullptr;
  }
  // Two ranks; the file "pid.R" has rank R's pid.
  Command Train(const Daemon& daemon, const std::string& more) {
    return StartAgent({"--nnodes=1", "--nproc-per-node=2", "--rdzv-id=job",
                       "--rdzv-endpoint=" + daemon.endpoint, "--rdzv-conf=is_host=0"},
                      "echo $$ >" + Path("pid") + ".$RANK; exec trainer/muster-train " +
                          "--dataset=generated --no-eval --epochs=100000 --threads=1 --comm=" +
                          GetParam() + " " + more);
  }
  // Waits until the ranks' reports satisfy the condition; meanwhile reads `agent`'s output, which
  // has a line each time a rank stands still.
  template <typename Condition>
  [[nodiscard]] static bool WaitBeside(Command& agent, Condition condition) {
    return WaitUntil(
        [&] {
          agent.TakeIn();
          return condition();
        },
        kTrainingStepsDeadline);
  }
  void End(Command& agent) {
    agent.Signal(SIGTERM);
    agent.Wait(kTrainingStepsDeadline);
  }
};
INSTANTIATE_TEST_SUITE_P(All, TrainingStepsTest, testing::Values("gloo", "shm"),
                         [](const auto& info) { return info.param; });

// "For ranks of our own trainer muster status shows steps and nothing else."
TEST_P(TrainingStepsTest, StepsLossAndPhasesAreToldOfEachRank) {
  const Daemon daemon = StartDaemon();
  Command agent = Train(daemon, "--model=mlp");
  for (const int number : {0, 1}) {
    Json rank;
    ASSERT_TRUE(WaitBeside(agent,
                           [&] {
                             rank = Rank(daemon, number);
                             // On a busy machine delayed beats arrive together, and their steps
                             // seem short.
                             return rank.is_object() && rank["loss"].is_number() &&
                                    rank["step"] > 20 && !rank["phases"].empty() &&
                                    rank["own_seconds"] < rank["step_seconds"];
                           }))
        << agent.err() << rank;
    EXPECT_GT(rank["samples_per_second"], 0) << rank;
    std::string names;
    for (const Json& phase : rank["phases"]) names += phase["name"].get<std::string>() + " ";
    EXPECT_EQ(names, "data forward backward optimizer other wait ");
    EXPECT_EQ(rank["phases"][5]["waits"], true);
    EXPECT_GT(rank["phases"][5]["seconds"], 0) << "gradients are averaged in each step: " << rank;
  }
  End(agent);
  EXPECT_FALSE(Contains(agent.err(), "sent a beat with")) << agent.err();
}

// Every step takes all ranks the same time, as they wait for one another.
TEST_P(TrainingStepsTest, RankThatIsSlowedDownIsTheStraggler) {
  const Daemon daemon = StartDaemon();
  // With steps much longer than its pauses: in a shorter step it would only miss time that it would
  // have spent waiting anyway.
  Command agent = Train(daemon, "--model=cnn --batch-size=4096");
  ASSERT_TRUE(WaitBeside(agent, [&] { return Rank(daemon, 1).is_object(); })) << agent.err();
  // It stands still for two thirds of the time.
  Command slow({"sh", "-c",
                "read -r pid <" + Path("pid") +
                    ".1; while kill -STOP $pid 2>/dev/null; do sleep 0.02; kill -CONT $pid; sleep "
                    "0.01; done"});
  const auto is_slow_in_its_own_work = [&] {
    const Json rank = Rank(daemon, 1);
    if (!rank.is_object() || !rank["straggler"].is_object()) return false;
    const std::string phase = rank["straggler"]["phase"];
    return phase == "forward" || phase == "backward";
  };
  EXPECT_TRUE(WaitBeside(agent, is_slow_in_its_own_work))
      << agent.err() << Rank(daemon, 1) << Rank(daemon, 0);
  EXPECT_TRUE(Rank(daemon, 0)["straggler"].is_null()) << Rank(daemon, 0);
  slow.Signal(SIGKILL);
  slow.Wait();
  Command go({"sh", "-c", "kill -CONT $(cat " + Path("pid") + ".1)"});
  EXPECT_EQ(go.Wait(), 0);
  End(agent);
}

}  // namespace
}  // namespace muster::test
