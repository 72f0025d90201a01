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
constexpr std::chrono::seconds kDeadline(240);

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
    ASSERT_TRUE(daemon_->WaitForErr("the daemon was killed by SIGKILL; starting it again"));
  }

  // A node with one rank of two.
  Command StartNode(const std::string& job, const std::vector<std::string>& program) {
    std::vector<std::string> arguments = {
        "--nnodes=2",           "--rdzv-id=" + job,
        "--max-restarts=3",     "--rdzv-endpoint=" + port_.endpoint(),
        "--shutdown-timeout=1", "--rdzv-conf=is_host=0"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    return StartMuster(
        arguments, {"PYTHON_EXEC=/usr/bin/python3", "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1"});
  }

  std::vector<std::string> Python(const std::string& name) const {
    return {"test/e2e/torch/ddp_survival.py", Path(name + ".pt"), "60"};
  }
  // 30 epochs of 17 steps; what it writes is in a directory of the job's name.
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

  // Returns once the training is well under way: the file, which it writes, has so many lines.
  void WaitForLines(const std::string& file, int lines) {
    Command wait({"sh", "-c",
                  "until [ \"$(wc -l <" + Path(file) + " 2>/dev/null || echo 0)\" -ge " +
                      std::to_string(lines) + " ]; do sleep 0.02; done"});
    ASSERT_EQ(wait.Wait(kDeadline), 0);
  }
  // SIGKILL to one worker of a job: the script or the trainer that has this argument.
  void KillWorkerWith(const std::string& argument) {
    Command kill({"sh", "-c", "kill -KILL $(pgrep -n -f -- '" + argument + "$')"});
    EXPECT_EQ(kill.Wait(), 0) << kill.err();
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
  if (import.Wait(kDeadline) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch (Debian: python3-torch)";
  }
  StartDaemonOn("state");
  const auto finish = [&](Command& one, Command& other) {
    EXPECT_EQ(one.Wait(kDeadline), 0) << one.err();
    EXPECT_EQ(other.Wait(kDeadline), 0) << other.err();
    return LossIn(one.out() + other.out());
  };
  Command one = StartNode("calm", Python("calm"));
  Command other = StartNode("calm", Python("calm"));
  const std::string loss = finish(one, other);
  ASSERT_NE(loss, "");

  {
    Command a = StartNode("worker", Python("worker")), b = StartNode("worker", Python("worker"));
    Command saved({"sh", "-c", "until test -e " + Path("worker.pt") + "; do sleep 0.02; done"});
    ASSERT_EQ(saved.Wait(kDeadline), 0);
    KillWorkerWith(Path("worker.pt") + " 60");
    EXPECT_EQ(finish(a, b), loss);
    EXPECT_TRUE(Contains(a.err() + b.err(), "(restart 1 of 3)"));
  }
  {
    Command a = StartNode("agent", Python("agent"));
    std::optional<Command> b = StartNode("agent", Python("agent"));
    Command saved({"sh", "-c", "until test -e " + Path("agent.pt") + "; do sleep 0.02; done"});
    ASSERT_EQ(saved.Wait(kDeadline), 0);
    b->Signal(SIGKILL);
    EXPECT_EQ(b->Wait(), -SIGKILL);
    Command replacement = StartNode("agent", Python("agent"));
    EXPECT_EQ(finish(a, replacement), loss);
    EXPECT_TRUE(Contains(a.out() + replacement.out(), " restarts 0\n")) << "a lost node costs none";
  }
  {
    Command a = StartNode("daemon", Python("daemon")), b = StartNode("daemon", Python("daemon"));
    Command saved({"sh", "-c", "until test -e " + Path("daemon.pt") + "; do sleep 0.02; done"});
    ASSERT_EQ(saved.Wait(kDeadline), 0);
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
    EXPECT_EQ(one.Wait(kDeadline), 0) << one.err();
    EXPECT_EQ(other.Wait(kDeadline), 0) << other.err();
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

}  // namespace
}  // namespace muster::test
