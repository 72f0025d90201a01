#include "test/linearizability/witness.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "test/linearizability/attending_agent.h"
#include "test/linearizability/daemon_process.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::linearizability {
namespace {

// What a witness finds when the daemon is killed under it, with or without what it had remembered.
Witness::Finding FindingOfKilled(bool forgets) {
  const test::TempDir directory;
  boost::asio::io_context loop;
  DaemonProcess daemon(directory.Path("state"));
  daemon.Start();
  if (!daemon.WaitUntilListening()) return {.trouble = "the daemon does not start"};
  AttendingAgent agent(loop, daemon.port(), daemon.credentials(), "histories");
  if (!test::RunUntil(loop, [&] { return agent.had_a_place(); })) return {.trouble = "no place"};
  auto work = boost::asio::make_work_guard(loop);
  std::jthread turns([&loop] { loop.run(); });

  Witness witness(
      {{"127.0.0.1:" + std::to_string(daemon.port())}, daemon.credentials(), "histories"}, 1);
  const auto calls = [&witness](std::size_t count) {
    return test::WaitUntil([&] { return witness.calls() >= count; });
  };
  const bool began = calls(100);
  daemon.Kill();
  if (forgets) daemon.ForgetState();
  daemon.Start();
  const bool went_on = calls(200);
  Witness::Finding finding = witness.End();
  if (!began || !went_on) finding.trouble = "the clients do not come to an end";
  loop.stop();
  turns.join();
  work.reset();
  return finding;
}

TEST(WitnessTest, DaemonThatRemembersIsLinearizable) {
  const Witness::Finding finding = FindingOfKilled(/*forgets=*/false);
  EXPECT_EQ(finding.trouble, "");
  EXPECT_GE(finding.calls, 200u);
}

TEST(WitnessTest, DaemonThatLosesItsMemoryIsCaught) {
  const Witness::Finding finding = FindingOfKilled(/*forgets=*/true);
  EXPECT_EQ(finding.trouble.rfind("what was seen cannot be explained; ", 0), 0u) << finding.trouble;
}

}  // namespace
}  // namespace muster::linearizability
