// An agent that is killed with SIGKILL leaves no worker behind, and nothing that a worker has
// started.
#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "test/support/run_until.h"
#include "test/worker/temp_dir.h"
#include "worker/spawn.h"

namespace muster::worker {
namespace {

// "After kill -9 of torchrun the GPUs stay busy."
TEST(AgentDeathTest, WorkersDieWithAnAgentThatIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  SpawnRequest request;
  request.argv = {"test/worker/agent_helper"};
  request.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  request.stdout_fd = write_end.get();
  const auto agent = Spawn(request);
  ASSERT_TRUE(agent.ok()) << agent.status();
  write_end.reset();

  std::string text;
  for (char byte; !text.ends_with('\n') && ::read(read_end.get(), &byte, 1) == 1;) text += byte;
  std::istringstream pids(text);
  pid_t worker = 0, grandchild = 0;
  pids >> worker >> grandchild;
  ASSERT_GT(worker, 0);
  ASSERT_GT(grandchild, 0);
  ASSERT_TRUE(IsAlive(worker));
  ASSERT_TRUE(IsAlive(grandchild));

  ::kill(agent->pid, SIGKILL);
  ::waitpid(agent->pid, nullptr, 0);
  EXPECT_TRUE(test::WaitUntil([&] { return !IsAlive(worker); }));
  EXPECT_TRUE(test::WaitUntil([&] { return !IsAlive(grandchild); }));
}

}  // namespace
}  // namespace muster::worker
