// An agent that is killed with SIGKILL leaves no worker and no descendant of one behind, wherever
// they went, and no other process is harmed. Each test runs with a control group for the workers,
// if the machine permits one, and without.
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>

#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"
#include "worker/process/process_info.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

using boost::asio::ip::tcp;
using test::IsAlive;
using test::ProcessesWith;
using test::ReadAll;
using test::WaitForProcesses;

std::string ProcFile(pid_t pid, const std::string& name) {
  return ReadAll("/proc/" + std::to_string(pid) + "/" + name);
}

class AgentDeathTest : public testing::TestWithParam<const char*> {
 protected:
  ~AgentDeathTest() override {
    if (agent_ > 0) KillAgent();
    for (const pid_t job : jobs_) {
      ::kill(job, SIGKILL);
      ::waitpid(job, nullptr, 0);
    }
    // Left behind by a failed test.
    for (const pid_t pid : ProcessesWith(mark_)) ::kill(pid, SIGKILL);
  }

  static std::string PortOf(const tcp::acceptor& listener) {
    return std::to_string(listener.local_endpoint().port());
  }

  // An agent whose worker runs `script`, which makes `count` processes. With `moves_to` its death
  // notice goes to another listener than the first.
  void StartAgent(const std::string& script, std::size_t count,
                  const tcp::acceptor* moves_to = nullptr) {
    SpawnRequest request;
    request.argv = {
        "test/worker/tree/agent_helper", GetParam(), mark_, script, "0", PortOf(listener_)};
    if (moves_to != nullptr) request.argv.push_back(PortOf(*moves_to));
    request.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    const auto agent = Spawn(request);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = agent->pid;
    ASSERT_TRUE(WaitForProcesses(mark_, count));
  }

  void KillAgent() {
    ::kill(agent_, SIGKILL);
    ::waitpid(agent_, nullptr, 0);
    agent_ = 0;
  }

  void ExpectAllDieWithTheAgent() {
    KillAgent();
    EXPECT_TRUE(WaitForProcesses(mark_, 0));
  }

  // A process with the mark of the agent's workers, whose parent, this test, stands for a
  // scheduler.
  pid_t SubmitJob() {
    SpawnRequest request;
    request.argv = {"sleep", "10000"};
    std::istringstream environment(ProcFile(ProcessesWith(mark_).at(0), "environ"));
    for (std::string entry; std::getline(environment, entry, '\0');) {
      if (entry.starts_with("MUSTER_AGENT_ID=")) request.env.push_back(entry);
    }
    EXPECT_EQ(request.env.size(), 1u);
    const auto job = Spawn(request);
    if (!job.ok()) std::abort();
    jobs_.push_back(job->pid);
    return job->pid;
  }

  // The agent's guard; 0 if there is none.
  pid_t Guard() const {
    std::istringstream children(ProcFile(agent_, "task/" + std::to_string(agent_) + "/children"));
    for (pid_t child; children >> child;) {
      if (ProcFile(child, "comm") == "orphan-guard\n") return child;
    }
    return 0;
  }

  // The workers' own control group, if they have one.
  std::optional<CgroupPath> WorkersCgroup() const {
    const auto own = FindOwnCgroup("");
    const auto theirs = FindCgroup("", ProcFile(ProcessesWith(mark_).at(0), "cgroup"),
                                   ReadAll("/proc/self/mountinfo"));
    return theirs == own ? std::nullopt : theirs;
  }

  // Whether the guard has sent the death notice.
  bool IsTold() { return IsTold(listener_); }
  bool IsTold(tcp::acceptor& listener) {
    listener.non_blocking(true);
    boost::system::error_code error;
    tcp::socket guard(io_);
    listener.accept(guard, error);
    if (error) return false;
    std::string text;
    boost::asio::read(guard, boost::asio::dynamic_buffer(text), error);
    EXPECT_EQ(text, "dead");
    return true;
  }

  const std::string mark_ = test::UniqueMark();
  pid_t agent_ = 0;
  std::vector<pid_t> jobs_;
  boost::asio::io_context io_;
  tcp::acceptor listener_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
};

// "After kill -9 of torchrun the GPUs stay busy."
TEST_P(AgentDeathTest, WorkersAndTheirChildrenDieWithAnAgentThatIsKilled) {
  StartAgent("sleep 10000 & wait", 2);
  ExpectAllDieWithTheAgent();
}

TEST_P(AgentDeathTest, SoDoesWhatHasASessionOfItsOwn) {
  StartAgent("setsid sh -c 'trap \"\" TERM; sleep 10000 & wait' & wait", 3);
  ExpectAllDieWithTheAgent();
}

// Like a daemon: forked twice, a session of its own, and its parents gone.
TEST_P(AgentDeathTest, SoDoesWhatHasForkedTwice) {
  StartAgent(
      "setsid sh -c 'setsid sh -c \"trap : TERM HUP; sleep 10000 & sleep 10000 & wait\" &';"
      "exec sleep 10000",
      4);
  ExpectAllDieWithTheAgent();
}

TEST_P(AgentDeathTest, DeathIsToldOnceNothingIsLeft) {
  StartAgent("setsid sh -c 'trap \"\" TERM; sleep 10000 & wait' & wait", 3);
  EXPECT_FALSE(IsTold());
  KillAgent();
  ASSERT_TRUE(test::WaitUntil([this] { return IsTold(); }));
  EXPECT_EQ(ProcessesWith(mark_).size(), 0u);
}

// "When another daemon had taken over, it heard of a node's death only after fifteen seconds."
TEST_P(AgentDeathTest, DeathIsToldWhereTheServerIsNow) {
  tcp::acceptor next(io_, {boost::asio::ip::address_v4::loopback(), 0});
  StartAgent("sleep 10000 & wait", 2, &next);
  KillAgent();
  ASSERT_TRUE(test::WaitUntil([&] { return IsTold(next); }));
  EXPECT_FALSE(IsTold());
}

// A guard that replaces a dead one knows it, too.
TEST_P(AgentDeathTest, NextGuardTellsWhereTheServerIsNow) {
  tcp::acceptor next(io_, {boost::asio::ip::address_v4::loopback(), 0});
  StartAgent("sleep 10000 & wait", 2, &next);
  pid_t guard = 0;
  // It gets its name a moment after its start.
  ASSERT_TRUE(test::WaitUntil([&] { return (guard = Guard()) > 0; }));
  ASSERT_EQ(::kill(guard, SIGKILL), 0);
  // Until it is reaped, the dead one is still found.
  ASSERT_TRUE(test::WaitUntil([&] { return Guard() != guard && Guard() > 0; }));
  KillAgent();
  ASSERT_TRUE(test::WaitUntil([&] { return IsTold(next); }));
  EXPECT_FALSE(IsTold());
}

// A marked process that we may not kill could be a worker's.
TEST_P(AgentDeathTest, DeathIsNotToldWhileSomethingIsLeft) {
  StartAgent("sleep 10000 & wait", 2);
  const pid_t job = SubmitJob();
  pid_t guard = 0;
  // It gets its name a moment after its start.
  ASSERT_TRUE(test::WaitUntil([&] { return (guard = Guard()) > 0; }));
  ExpectAllDieWithTheAgent();
  ASSERT_TRUE(test::WaitUntil([&] { return !IsAlive(guard); }));
  EXPECT_FALSE(IsTold());
  EXPECT_TRUE(IsAlive(job));
}

TEST_P(AgentDeathTest, TheControlGroupGoesToo) {
  StartAgent("setsid sleep 10000 & wait", 2);
  const std::optional<CgroupPath> group = WorkersCgroup();
  if (!group.has_value()) GTEST_SKIP() << "the workers have no control group of their own here";
  ASSERT_TRUE(std::filesystem::exists(group->directory));
  ExpectAllDieWithTheAgent();
  EXPECT_TRUE(test::WaitUntil([&] { return !std::filesystem::exists(group->directory); }));
}

// "When the agent died it also killed a job that my worker had submitted to the scheduler."
TEST_P(AgentDeathTest, ProcessOfSomebodyElseThatCarriesTheMarkLivesOn) {
  StartAgent("sleep 10000 & wait", 2);
  const pid_t job = SubmitJob();
  ExpectAllDieWithTheAgent();
  EXPECT_TRUE(IsAlive(job));
}

// "The OOM killer took the small process beside the agent, then the agent: the loaders lived on."
TEST_P(AgentDeathTest, AllDieEvenWhenTheGuardHasBeenKilledBefore) {
  StartAgent("sleep 10000 & setsid sleep 10000 & wait", 3);
  pid_t guard = 0;
  // It gets its name a moment after its start.
  ASSERT_TRUE(test::WaitUntil([&] { return (guard = Guard()) > 0; }));
  ASSERT_EQ(::kill(guard, SIGKILL), 0);
  // Until it is reaped, the dead one is still found.
  ASSERT_TRUE(test::WaitUntil([&] { return Guard() != guard && Guard() > 0; }));
  ExpectAllDieWithTheAgent();
  EXPECT_TRUE(test::WaitUntil([this] { return IsTold(); }));
}

INSTANTIATE_TEST_SUITE_P(, AgentDeathTest, testing::Values("cgroup", "none"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::worker
