#include "worker/tree/orphan_hunt.h"

#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include <sys/wait.h>

#include <gtest/gtest.h>

#include "test/support/wait_until.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

using Env = std::vector<std::string>;

TEST(AgentMarkTest, OneForTheWholeProcess) {
  EXPECT_EQ(AgentMark(), AgentMark());
  EXPECT_TRUE(AgentMark().starts_with(std::to_string(::getpid()) + "-"));
}

TEST(AgentMarkTest, MarksOfAgentsAboveStay) {
  Env env = {"A=1"};
  AddMark("outer", &env);
  EXPECT_EQ(env, (Env{"A=1", "MUSTER_AGENT_ID=outer"}));
  AddMark("inner", &env);
  EXPECT_EQ(env, (Env{"A=1", "MUSTER_AGENT_ID=outer:inner"}));
  Env empty = {"MUSTER_AGENT_ID="};
  AddMark("inner", &empty);
  EXPECT_EQ(empty, (Env{"MUSTER_AGENT_ID=inner"}));
}

TEST(AgentMarkTest, ProcessHasExactlyItsMarks) {
  SpawnRequest request;
  request.argv = {"sleep", "10000"};
  request.env = {"XMUSTER_AGENT_ID=x", "MUSTER_AGENT_ID=outer:inner", "PATH=/bin"};
  const auto process = Spawn(request);
  ASSERT_TRUE(process.ok()) << process.status();
  // The kernel returns from the exec just before the new program's environment is visible.
  EXPECT_TRUE(test::WaitUntil([&] { return HasMark(process->pid, "outer"); }));
  EXPECT_TRUE(HasMark(process->pid, "inner"));
  for (const char* other : {"x", "out", "outer:inner", ""}) {
    EXPECT_FALSE(HasMark(process->pid, other)) << other;
  }
  ::kill(process->pid, SIGKILL);
  ::waitpid(process->pid, nullptr, 0);
  EXPECT_FALSE(HasMark(process->pid, "outer"));
}

}  // namespace
}  // namespace muster::worker
