// How a dead agent's guard hunts for escaped processes, here run in a process that is not an
// orphan. agent_death_test covers which processes it kills and which it spares.
#include "worker/tree/orphan_hunt.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>

#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

// "The job's sleep was still there": it was in the middle of its exec when the guard looked, and
// showed no environment, so that nothing seemed to be left.
TEST(OrphanHuntTest, WhoeverIsInTheMiddleOfAnExecIsLookedAtAgain) {
  SpawnRequest request;
  request.argv = {"test/worker/tree/exec_forever", "10000000"};
  request.env = {"MUSTER_AGENT_ID=mark"};
  const auto process = Spawn(request);
  ASSERT_TRUE(process.ok()) << process.status();
  // It is our child, and so spared; but it exists.
  EXPECT_FALSE(KillOrphans("mark", std::chrono::seconds(2)));
  ::kill(process->pid, SIGKILL);
  ::waitpid(process->pid, nullptr, 0);
  EXPECT_TRUE(KillOrphans("mark", std::chrono::seconds(60)));
}

}  // namespace
}  // namespace muster::worker
