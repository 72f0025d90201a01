// Commands that a script starts with SIGINT and SIGTERM ignored, as shells do for background jobs.
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

bool Ignores(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("SigIgn:", 0) != 0) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

using IgnoredSignalTest = E2eTest;

// "`muster kv wait &` in my script runs on when it is told to stop", and similar commands.
TEST_F(IgnoredSignalTest, IsHeardByEachCommand) {
  const Daemon daemon = StartDaemon();
  const std::string endpoint = "--rdzv-endpoint=" + daemon.endpoint;
  Command agent =
      StartAgent({"--nnodes=1", endpoint, "--rdzv-id=job"}, "echo is ready; exec sleep 10000");
  ASSERT_TRUE(agent.WaitForOut("is ready")) << agent.err();
  const HeldPort port;
  const std::vector<std::vector<std::string>> commands = {
      {MusterPath(), "kv", "get", "--timeout=10000", endpoint, "--rdzv-id=job", "no-such-key"},
      {MusterPath(), "logs", "--follow", endpoint, "job"},
      {MusterPath(), "status", "--watch", endpoint},
      {MusterPath(), "store", "--listen=127.0.0.1:0"},
      {DaemonPath(), "--insecure", "--listen=127.0.0.1:0"},
      {DaemonPath(), "--insecure", "--listen=" + port.endpoint(), "--state-dir=" + Path("state")}};
  for (const std::vector<std::string>& command : commands) {
    for (const int signal : {SIGINT, SIGTERM}) {
      std::vector<std::string> argv =
          Joined({"sh", "-c", "trap '' INT TERM; exec \"$@\"", "sh"}, command);
      Command one(argv, Environment());
      // After the exec it ignores neither.
      ASSERT_TRUE(WaitUntil([&] {
        std::ifstream file("/proc/" + std::to_string(one.pid()) + "/comm");
        std::string name;
        std::getline(file, name);
        return name != "sh" && !Ignores(one.pid(), signal);
      })) << command[1];
      one.Signal(signal);
      EXPECT_TRUE(one.Wait().has_value()) << command[1];
    }
  }
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace muster::test
