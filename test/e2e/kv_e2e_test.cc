// `muster kv` as shell scripts use it, in real processes: as workers and outside of a job.
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class KvTest : public E2eTest {
 protected:
  // A job "job" whose worker lives until key "end" is there.
  void StartJob() {
    daemon_.emplace(StartDaemon());
    agent_.emplace(
        StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_->endpoint},
                   "echo up; exec " + MusterPath() + " kv wait end"));
    ASSERT_TRUE(agent_->WaitForOut("up")) << agent_->err();
  }
  void EndJob() {
    EXPECT_EQ(Kv({"set", "end", ""}).Wait(), 0);
    EXPECT_EQ(agent_->Wait(), 0) << agent_->err();
  }

  // `muster kv` of that job, from outside.
  Command Kv(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {MusterPath(), "kv", "--rdzv-endpoint=" + daemon_->endpoint,
                                     "--rdzv-id=job"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Command(std::move(argv));
  }

  // Waits until one more caller at barrier "b" of four makes so many: "3 of 4". "4 of 4" lets all
  // go.
  bool ReachedBarrier(const std::string& reached) const {
    const auto deadline = std::chrono::steady_clock::now() + Command::kDeadline;
    while (std::chrono::steady_clock::now() < deadline) {
      Command caller = Kv({"barrier", "b", "4", "--timeout=0.05"});
      const std::optional<int> exit = caller.Wait();
      if (reached == "4 of 4" ? exit == 0 : caller.err().find(reached) != std::string::npos) {
        return true;
      }
    }
    return false;
  }

  // A job of one node whose workers run a shell script, in which $kv is `muster kv`.
  Command StartScript(const std::string& script, const std::string& nproc = "1") {
    return StartAgent(
        {"--nnodes=1", "--rdzv-endpoint=" + port_.endpoint(), "--nproc-per-node=" + nproc},
        "kv='" + MusterPath() + " kv'\n" + script);
  }

  HeldPort port_;
  std::optional<Daemon> daemon_;
  std::optional<Command> agent_;
};

TEST_F(KvTest, ScriptSeesValuesAndExitCodes) {
  Command agent = StartScript(R"(
    $kv get k; echo "get $?"
    $kv set k v; echo "set $?"
    $kv get k; echo " get $?"
    echo "from stdin" | $kv append k; $kv get k
    $kv add n; $kv add n 41; $kv add n -2; $kv add k; echo "add $?"
    $kv add n 9223372036854775807; echo "add $?"
    $kv compare-set k x y; echo " compare-set $?"
    $kv compare-set lock "" me; echo " compare-set $?"
    $kv check k n; echo "check $?"
    $kv check k nothing; echo "check $?"
    $kv count
    $kv delete k; echo "delete $?"
    $kv delete k; echo "delete $?"
    $kv get --timeout 0.01 k; echo "get $?"
    $kv set --timeout 1 k v; echo "set $?"
    $kv get --rdzv-id other k; echo "get $?")");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(agent.out(),
            "get 1\nset 0\nv get 0\nvfrom stdin\n"
            "1\n42\n40\nadd 3\nadd 3\n"
            "vfrom stdin\n compare-set 1\nme compare-set 0\n"
            "check 0\ncheck 1\n3\ndelete 0\ndelete 1\nget 1\nset 2\nget 3\n");
  EXPECT_EQ(Lines(agent.err()).size(), 7u) << agent.err();
  for (const char* sentence :
       {"muster kv: no such key: 'k'\n", "muster kv: key 'k' was not set within 10 ms\n",
        "muster kv: `set` does not wait and takes no --timeout; see", ": no job 'other' here\n"}) {
    EXPECT_TRUE(Contains(agent.err(), sentence));
  }
}

TEST_F(KvTest, ValuesAreAnyBytes) {
  const std::string file = Path("value");
  Command agent =
      StartScript("head -c 1048576 /dev/urandom >" + file + "\n$kv set k <" + file +
                  " && $kv get k | cmp - " + file + " && { cat " + file + "; echo; } | $kv set k");
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_TRUE(
      Contains(agent.err(), "muster kv: stdin holds more than 1 MiB, the limit for a value\n"));
}

TEST_F(KvTest, WaitIsAnsweredByAnotherProcess) {
  StartJob();
  Command waiter = Kv({"wait", "a", "b"});
  Command reader = Kv({"get", "b", "--timeout=60"});
  EXPECT_EQ(Kv({"set", "a", "1"}).Wait(), 0);
  EXPECT_EQ(Kv({"set", "b", "2"}).Wait(), 0);
  EXPECT_EQ(waiter.Wait(), 0) << waiter.err();
  EXPECT_EQ(reader.Wait(), 0) << reader.err();
  EXPECT_EQ(reader.out(), "2");
  EndJob();
}

TEST_F(KvTest, WaitEndsWhenTheTimeIsOver) {
  StartJob();
  Command waiter = Kv({"wait", "a", "b", "--timeout=0.1"});
  EXPECT_EQ(waiter.Wait(), 1);
  EXPECT_EQ(waiter.err(), "muster kv: not all of 'a', 'b' were set within 100 ms\n");
  EndJob();
}

TEST_F(KvTest, WaitEndsWithTheJob) {
  StartJob();
  Command waiter = Kv({"wait", "never"});
  EndJob();
  EXPECT_EQ(waiter.Wait(), 3);
  EXPECT_TRUE(Contains(waiter.err(), "muster kv: " + daemon_->endpoint + ": "));
}

// Each time nobody gets through before all three have come.
TEST_F(KvTest, ThreeShellsMeetAtABarrierAgainAndAgain) {
  Command agent = StartScript(R"(
    for use in 1 2 3 4; do
      $kv add came >/dev/null
      $kv barrier here-$MUSTER_ROUND $WORLD_SIZE || exit 4
      test $($kv get came) -ge $((3 * use)) || exit 5
    done)",
                              "3");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

TEST_F(KvTest, BarrierSaysHowManyHaveCome) {
  Command agent = StartScript("$kv barrier b 2 --timeout 0.1; echo $?");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(agent.out(), "1\n");
  EXPECT_EQ(agent.err(), "muster kv: 1 of 2 reached barrier 'b' within 100 ms\n");
}

// A caller was killed at the barrier. The others got through as if it were there, or, when it was
// the last to come, never.
TEST_F(KvTest, KilledCallerDoesNotCountAtABarrier) {
  StartJob();
  Command first = Kv({"barrier", "b", "4"});
  Command killed = Kv({"barrier", "b", "4"});
  ASSERT_TRUE(ReachedBarrier("3 of 4"));
  killed.Signal(SIGKILL);
  EXPECT_EQ(killed.Wait(), -SIGKILL);
  ASSERT_TRUE(ReachedBarrier("2 of 4"));
  Command second = Kv({"barrier", "b", "4"});
  Command third = Kv({"barrier", "b", "4"});
  ASSERT_TRUE(ReachedBarrier("4 of 4"));
  for (Command* command : {&first, &second, &third}) {
    EXPECT_EQ(command->Wait(), 0) << command->err();
  }
  EndJob();
}

// A counter of the same name sent everybody on; who deleted it let the next one through alone.
TEST_F(KvTest, BarrierIsNoKey) {
  Command agent = StartScript(R"(
    $kv set b 7
    $kv barrier b 2 & $kv barrier b 2; wait $!; echo "barrier $?"
    $kv get b; $kv delete b; $kv delete b/0
    $kv barrier b 2 --timeout 0.1; echo " barrier $?"
    $kv count)");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(agent.out(), "barrier 0\n7 barrier 1\n0\n");
  EXPECT_EQ(agent.err(),
            "muster kv: no such key: 'b/0'\nmuster kv: 1 of 2 reached barrier 'b' within 100 ms\n");
}

// Two barriers let each other's callers through, and so did callers who expected different counts.
TEST_F(KvTest, BarrierIsLeftOnlyByThoseWhoMeantIt) {
  StartJob();
  Command waiter = Kv({"barrier", "b", "4"});
  ASSERT_TRUE(ReachedBarrier("2 of 4"));
  EXPECT_EQ(Kv({"barrier", "b/0", "1"}).Wait(), 0);
  EXPECT_EQ(Kv({"set", "b/0", ""}).Wait(), 0);
  Command odd = Kv({"barrier", "b", "2"});
  EXPECT_EQ(odd.Wait(), 3);
  EXPECT_EQ(odd.err(), "muster kv: " + daemon_->endpoint +
                           ": barrier 'b': this call expects 2, but those who already wait there "
                           "expect 4\n");
  EXPECT_TRUE(ReachedBarrier("2 of 4"));
  EndJob();
  EXPECT_EQ(waiter.Wait(), 3);
}

TEST_F(KvTest, RoundIsAnotherAfterEachRestart) {
  Command agent =
      StartAgent({"--nnodes=1", "--rdzv-endpoint=" + port_.endpoint(), "--max-restarts=1"},
                 MusterPath() + " kv set from-$MUSTER_ROUND x; " + MusterPath() +
                     " kv check from-0 from-1 || exit 7");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

TEST_F(KvTest, DaemonThatDiesEndsWhoWaits) {
  StartJob();
  Command waiter = Kv({"wait", "never"});
  daemon_->process.Signal(SIGKILL);
  EXPECT_EQ(daemon_->process.Wait(), -SIGKILL);
  EXPECT_EQ(waiter.Wait(), 3);
  EXPECT_TRUE(Contains(waiter.err(), "muster kv: " + daemon_->endpoint + ": "));
  EXPECT_EQ(Lines(waiter.err()).size(), 1u) << waiter.err();
  EXPECT_EQ(Kv({"get", "k"}).Wait(), 3);
  EXPECT_NE(agent_->Wait(), 0);
}

}  // namespace
}  // namespace muster::test
