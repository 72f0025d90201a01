// Training during which a worker, an agent or the daemon is killed ends with the same loss as
// undisturbed training. Both programs resume from their checkpoints and are deterministic: the
// Python script's last loss must be identical, and so must every loss and every weight of
// muster-train.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"

namespace muster::test {
namespace {

// Processes that import torch, several at a time, on a machine that may have one slow core.
constexpr std::chrono::seconds kTrainingSurvivalDeadline(240);

class TrainingSurvivalTest : public E2eTest {
 protected:
  void StartDaemonOn(const std::string& state) {
    daemon_.emplace(std::vector<std::string>{DaemonPath(), "--listen=" + port_.endpoint(),
                                             "--state-dir=" + Path(state)});
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
  }

  // Returns once its keeper has started it again.
  void KillDaemon() {
    const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
    ASSERT_EQ(children.size(), 1u);
    kill(children.front(), SIGKILL);
    ASSERT_TRUE(daemon_->WaitForErr("the daemon was killed by SIGKILL; restarting it"));
  }

  // A node with one of two ranks.
  Command StartNode(const std::string& job, const std::vector<std::string>& program) {
    std::vector<std::string> arguments = Joined(
        {"--nnodes=2", "--rdzv-id=" + job, "--max-restarts=3",
         "--rdzv-endpoint=" + port_.endpoint(), "--shutdown-timeout=1", "--rdzv-conf=is_host=0"},
        program);
    return StartMuster(
        arguments, {"PYTHON_EXEC=/usr/bin/python3", "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1"});
  }

  std::vector<std::string> Python(const std::string& name) const {
    return {"test/e2e/torch/ddp_survival.py", Path(name + ".pt"), "60"};
  }
  // 30 epochs of 17 steps; its files are in a directory with the job's name.
  std::vector<std::string> Trainer(const std::string& name) {
    std::filesystem::create_directory(Path(name));
    return {"--no-python",
            "trainer/muster-train",
            "--dataset=generated",
            "--comm=gloo",
            "--no-eval",
            "--epochs=30",
            "--model=mlp",
            "--loss-log=" + Path(name + "/loss"),
            "--checkpoint-dir=" + Path(name + "/steps"),
            "--checkpoint-every=10",
            "--checkpoint=" + Path(name + "/weights.pt")};
  }

  // Returns once the training is well under way: its file has this many lines.
  void WaitForLines(const std::string& file, int lines) {
    Command wait({"sh", "-c",
                  "until [ \"$(wc -l <" + Path(file) + " 2>/dev/null || echo 0)\" -ge " +
                      std::to_string(lines) + " ]; do sleep 0.02; done"});
    ASSERT_EQ(wait.Wait(kTrainingSurvivalDeadline), 0);
  }
  // SIGKILL to one worker of a job: the script or the trainer with this argument.
  void KillWorkerWith(const std::string& argument) {
    Command kill({"sh", "-c", "kill -KILL $(pgrep -n -f -- '" + argument + "$')"});
    EXPECT_EQ(kill.Wait(), 0) << kill.err();
  }

  // The same to the rank-th of several workers on one node.
  void KillRankWith(const std::string& argument, int rank, int ranks) {
    Command kill({"sh", "-c",
                  "kill -KILL $(pgrep -f -- '" + argument + "$' | tail -n " +
                      std::to_string(ranks) + " | sed -n " + std::to_string(rank + 1) + "p)"});
    EXPECT_EQ(kill.Wait(), 0) << kill.err();
  }
  // 150 steps of a GPT whose ranks share the model as `mesh` says.
  std::vector<std::string> Shared(const std::string& name, const std::vector<std::string>& mesh) {
    std::filesystem::create_directory(Path(name));
    std::vector<std::string> words =
        Joined({"--no-python", "trainer/muster-train", "--model=gpt", "--dataset=generated",
                "--layers=4", "--width=16", "--context=8", "--dtype=float64", "--batch-size=16",
                "--max-steps=150", "--no-eval", "--loss-log=" + Path(name + "/loss"),
                "--checkpoint-dir=" + Path(name + "/steps"), "--checkpoint-every=10"},
               mesh);
    words.push_back("--checkpoint=" + Path(name + "/weights.pt"));
    return words;
  }

  static std::string LossIn(const std::string& out) {
    const std::size_t at = out.find("final ");
    return at == std::string::npos ? "" : out.substr(at + 6, out.find(" restarts", at) - at - 6);
  }
  HeldPort port_;
  std::optional<Command> daemon_;
};

TEST_F(TrainingSurvivalTest, PythonScriptEndsWithTheSameLossWhoeverIsKilled) {
  Command import({"/usr/bin/python3", "-c", "import torch.distributed"});
  if (import.Wait(kTrainingSurvivalDeadline) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch (Debian: python3-torch)";
  }
  StartDaemonOn("state");
  const auto finish = [&](Command& one, Command& other) {
    EXPECT_EQ(one.Wait(kTrainingSurvivalDeadline), 0) << one.err();
    EXPECT_EQ(other.Wait(kTrainingSurvivalDeadline), 0) << other.err();
    return LossIn(one.out() + other.out());
  };
  Command one = StartNode("calm", Python("calm"));
  Command other = StartNode("calm", Python("calm"));
  const std::string loss = finish(one, other);
  ASSERT_NE(loss, "");

  {
    Command a = StartNode("worker", Python("worker")), b = StartNode("worker", Python("worker"));
    Command saved({"sh", "-c", "until test -e " + Path("worker.pt") + "; do sleep 0.02; done"});
    ASSERT_EQ(saved.Wait(kTrainingSurvivalDeadline), 0);
    KillWorkerWith(Path("worker.pt") + " 60");
    EXPECT_EQ(finish(a, b), loss);
    EXPECT_TRUE(Contains(a.err() + b.err(), "(restart 1 of 3)"));
  }
  {
    Command a = StartNode("agent", Python("agent"));
    std::optional<Command> b = StartNode("agent", Python("agent"));
    Command saved({"sh", "-c", "until test -e " + Path("agent.pt") + "; do sleep 0.02; done"});
    ASSERT_EQ(saved.Wait(kTrainingSurvivalDeadline), 0);
    b->Signal(SIGKILL);
    EXPECT_EQ(b->Wait(), -SIGKILL);
    Command replacement = StartNode("agent", Python("agent"));
    EXPECT_EQ(finish(a, replacement), loss);
    EXPECT_TRUE(Contains(a.out() + replacement.out(), " restarts 0\n")) << "a lost node costs none";
  }
  {
    Command a = StartNode("daemon", Python("daemon")), b = StartNode("daemon", Python("daemon"));
    Command saved({"sh", "-c", "until test -e " + Path("daemon.pt") + "; do sleep 0.02; done"});
    ASSERT_EQ(saved.Wait(kTrainingSurvivalDeadline), 0);
    KillDaemon();
    EXPECT_EQ(finish(a, b), loss);
    EXPECT_TRUE(Contains(a.out() + b.out(), " restarts 0\n")) << "no worker was restarted";
  }
}

TEST_F(TrainingSurvivalTest, MusterTrainEndsWithTheSameWeightsWhoeverIsKilled) {
  struct Outcome {
    std::string losses;
    std::string weights;
    bool operator==(const Outcome&) const = default;
  };
  StartDaemonOn("state");
  const auto finish = [&](Command& one, Command& other, const std::string& name) {
    EXPECT_EQ(one.Wait(kTrainingSurvivalDeadline), 0) << one.err();
    EXPECT_EQ(other.Wait(kTrainingSurvivalDeadline), 0) << other.err();
    return Outcome{ReadAll(Path(name + "/loss")), ReadAll(Path(name + "/weights.pt"))};
  };
  Command one = StartNode("calm", Trainer("calm"));
  Command other = StartNode("calm", Trainer("calm"));
  const Outcome calm = finish(one, other, "calm");
  ASSERT_EQ(std::count(calm.losses.begin(), calm.losses.end(), '\n'), 30 * 17);
  ASSERT_NE(calm.weights, "");

  {
    Command a = StartNode("worker", Trainer("worker")), b = StartNode("worker", Trainer("worker"));
    WaitForLines("worker/loss", 100);
    KillWorkerWith(Path("worker/weights.pt"));
    EXPECT_TRUE(finish(a, b, "worker") == calm);
    EXPECT_TRUE(Contains(a.err() + b.err(), "(restart 1 of 3)"));
    EXPECT_TRUE(Contains(a.out() + b.out(), "/worker/steps/step-")) << "where it went on from";
  }
  {
    Command a = StartNode("agent", Trainer("agent"));
    std::optional<Command> b = StartNode("agent", Trainer("agent"));
    WaitForLines("agent/loss", 100);
    b->Signal(SIGKILL);
    EXPECT_EQ(b->Wait(), -SIGKILL);
    Command replacement = StartNode("agent", Trainer("agent"));
    EXPECT_TRUE(finish(a, replacement, "agent") == calm);
    EXPECT_TRUE(Contains(a.out() + replacement.out(), "/agent/steps/step-"));
  }
  {
    Command a = StartNode("daemon", Trainer("daemon")), b = StartNode("daemon", Trainer("daemon"));
    WaitForLines("daemon/loss", 100);
    KillDaemon();
    EXPECT_TRUE(finish(a, b, "daemon") == calm);
    EXPECT_FALSE(Contains(a.out() + b.out(), "/daemon/steps/step-")) << "no worker was restarted";
  }
}

// Whichever dimension of a mesh loses a rank, the job restarts and ends as if nothing had happened.
TEST_F(TrainingSurvivalTest, AMeshLosesARankOfAnyDimension) {
  const auto start = [this](const std::string& name, const std::vector<std::string>& mesh) {
    std::vector<std::string> words = {"--standalone", "--nproc-per-node=4", "--max-restarts=3"};
    const std::vector<std::string> program = Shared(name, mesh);
    words.insert(words.end(), program.begin(), program.end());
    return StartMuster(words, {"OMP_NUM_THREADS=1"});
  };
  const struct {
    std::vector<std::string> mesh;
    std::vector<int> victims;
  } kMeshes[] = {{{"--mesh=pp=2,tp=2"}, {1, 2}}, {{"--mesh=dp=2,tp=2", "--zero=3"}, {3}}};
  int number = 0;
  for (const auto& [mesh, victims] : kMeshes) {
    const std::string calm = "calm" + std::to_string(++number);
    Command undisturbed = start(calm, mesh);
    ASSERT_EQ(undisturbed.Wait(kTrainingSurvivalDeadline), 0) << undisturbed.err();
    for (const int victim : victims) {
      SCOPED_TRACE(mesh[0] + ", rank " + std::to_string(victim));
      const std::string name = "killed" + std::to_string(++number);
      Command job = start(name, mesh);
      WaitForLines(name + "/loss", 40);
      KillRankWith(Path(name + "/weights.pt"), victim, 4);
      EXPECT_EQ(job.Wait(kTrainingSurvivalDeadline), 0) << job.err();
      EXPECT_TRUE(Contains(job.err(), "(restart 1 of 3)")) << job.err();
      EXPECT_EQ(ReadAll(Path(name + "/loss")), ReadAll(Path(calm + "/loss")));
      EXPECT_TRUE(ReadAll(Path(name + "/weights.pt")) == ReadAll(Path(calm + "/weights.pt")));
    }
  }
}

// A job that loses one of its two nodes continues by itself from the last checkpoint, with the mesh
// that is left; the losses are those of one rank.
TEST_F(TrainingSurvivalTest, AMeshThatLosesANodeGoesOnWithWhatIsLeft) {
  StartDaemonOn("state");
  std::vector<std::string> alone = {"--standalone"};
  const std::vector<std::string> program = Shared("alone", {});
  alone.insert(alone.end(), program.begin(), program.end());
  Command one = StartMuster(alone, {"OMP_NUM_THREADS=1"});
  ASSERT_EQ(one.Wait(kTrainingSurvivalDeadline), 0) << one.err();
  const std::pair<const char*, const char*> kMeshes[] = {
      {"tensor", "--mesh=tp=2"}, {"pipeline", "--mesh=pp=2"}, {"chosen", "--mesh=auto"}};
  for (const auto& [job, mesh] : kMeshes) {
    SCOPED_TRACE(mesh);
    const std::string name = job;
    const auto start = [&] {
      std::vector<std::string> words = {"--nnodes=1:2",
                                        "--nproc-per-node=2",
                                        "--rdzv-id=" + name,
                                        "--max-restarts=3",
                                        "--rdzv-conf=is_host=0,last_call_timeout=60",
                                        "--rdzv-endpoint=" + port_.endpoint()};
      const std::vector<std::string> training = Shared(name, {mesh});
      words.insert(words.end(), training.begin(), training.end());
      return StartMuster(words, {"OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo"});
    };
    Command stays = start();
    Command goes = start();
    WaitForLines(name + "/loss", 40);
    goes.Signal(SIGKILL);
    EXPECT_EQ(goes.Wait(), -SIGKILL);
    EXPECT_EQ(stays.Wait(kTrainingSurvivalDeadline), 0) << stays.err();
    EXPECT_TRUE(Contains(stays.out() + stays.err(), "/steps/step-")) << "where it went on from";
    EXPECT_EQ(ReadAll(Path(name + "/loss")), ReadAll(Path("alone/loss")));
  }
}

}  // namespace
}  // namespace muster::test
