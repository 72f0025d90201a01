// Muster does not poll: while nothing happens, nothing wakes up except for keep-alives.
//
// A thread's count of voluntary context switches increases each time it goes back to sleep in the
// kernel. /proc shows that count for each thread, so the wake-ups of a process can be counted
// without touching it. gRPC's own threads are counted separately: its callback API (1.51) waits in
// steps of a second and then pauses for 100 ms on each of its polling threads, and its two timer
// threads wake up once a second. There is no setting for either.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// Of a process, since its start or within a window of time.
struct WakeUps {
  // The thread that owns all of our objects.
  long main = 0;
  // gRPC's.
  long others = 0;
  long other_threads = 0;
};

struct Window {
  double seconds = 0;
  std::vector<WakeUps> processes;
};

class IdleTest : public E2eTest {
 protected:
  static WakeUps Count(pid_t pid) {
    WakeUps wake_ups;
    const std::string process = std::to_string(pid);
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + process + "/task")) {
      std::ifstream status(thread.path() / "status");
      std::string word;
      long switches = 0;
      while (status >> word && word != "voluntary_ctxt_switches:") {
      }
      status >> switches;
      if (thread.path().filename() == process) {
        wake_ups.main = switches;
      } else {
        wake_ups.others += switches;
        ++wake_ups.other_threads;
      }
    }
    return wake_ups;
  }

  // Counts for a while.
  static Window LookOn(const std::vector<pid_t>& pids) {
    const auto start = std::chrono::steady_clock::now();
    Window window;
    for (const pid_t pid : pids) window.processes.push_back(Count(pid));
    Command({"sleep", "3"}).Wait();
    for (std::size_t i = 0; i < pids.size(); ++i) {
      WakeUps& counted = window.processes[i];
      const WakeUps now = Count(pids[i]);
      counted = {now.main - counted.main, now.others - counted.others, now.other_threads};
    }
    window.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return window;
  }

  // The same for one process, after earlier activity has settled: in some window, its own thread
  // must not wake up at all.
  static Window LookOnQuietly(pid_t pid) {
    Window window = LookOn({pid});
    for (int more = 0; more < 3 && window.processes[0].main > 0; ++more) window = LookOn({pid});
    return window;
  }

  // Twice the measured rate, for each of gRPC's threads.
  static double Housekeeping(const WakeUps& wake_ups, double seconds) {
    return 4 * seconds * static_cast<double>(wake_ups.other_threads);
  }
};

TEST_F(IdleTest, AgentWithoutNetworkSleepsUntilItsWorkerEnds) {
  Command agent = StartAgent({"--standalone"}, "echo ready; exec sleep 10000");
  ASSERT_TRUE(agent.WaitForOut("ready")) << agent.err();
  const Window window = LookOnQuietly(agent.pid());
  EXPECT_EQ(window.processes[0].main, 0);
  EXPECT_EQ(window.processes[0].other_threads, 0) << "it needs only one thread";
}

TEST_F(IdleTest, DaemonWithoutAgentsSleeps) {
  const Daemon daemon = StartDaemon();
  const Window window = LookOnQuietly(daemon.process.pid());
  const WakeUps& wake_ups = window.processes[0];
  EXPECT_EQ(wake_ups.main, 0);
  EXPECT_LE(wake_ups.others, Housekeeping(wake_ups, window.seconds));
}

TEST_F(IdleTest, OnlyKeepAlivesWakeUpADaemonAndItsAgents) {
  Daemon daemon = StartDaemon();
  // One keep-alive each second.
  const std::vector<std::string> flags = {"--nnodes=2", "--rdzv-id=job",
                                          "--rdzv-endpoint=" + daemon.endpoint,
                                          "--rdzv-conf=keep_alive_interval=1,lease_timeout=5"};
  Command one = StartAgent(flags, "echo ready; exec sleep 10000");
  Command other = StartAgent(flags, "echo ready; exec sleep 10000");
  ASSERT_TRUE(one.WaitForOut("ready") && other.WaitForOut("ready")) << one.err();

  // For each keep-alive, three at most: an agent's timer expires, gRPC reports that it is written
  // and that an answer came; the daemon gets it, sets its timer, and gRPC reports that the answer
  // is written. A few more are allowed for what was under way at the beginning; on a busy machine a
  // start may take longer than that, and then the next window counts.
  const std::vector<long> agents_served = {2, 1, 1};
  const auto too_many = [&](const Window& window, std::size_t process) {
    const double beats = (window.seconds + 1) * static_cast<double>(agents_served[process]);
    return window.processes[process].main > 3 * beats + 5;
  };
  const auto look_on = [&] { return LookOn({daemon.process.pid(), one.pid(), other.pid()}); };
  Window window = look_on();
  for (int more = 0;
       more < 3 && (too_many(window, 0) || too_many(window, 1) || too_many(window, 2)); ++more) {
    window = look_on();
  }
  for (const std::size_t process : {0, 1, 2}) {
    EXPECT_GE(window.processes[process].main, 1);
    EXPECT_FALSE(too_many(window, process)) << window.processes[process].main;
  }
  const double beats = window.seconds + 1;
  for (const WakeUps& wake_ups : window.processes) {
    // Beside its housekeeping, two for each keep-alive in each direction.
    EXPECT_LE(wake_ups.others, Housekeeping(wake_ups, window.seconds) + 2 * 2 * beats);
  }
}

}  // namespace
}  // namespace muster::test
