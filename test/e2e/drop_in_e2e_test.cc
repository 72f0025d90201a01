// Command lines that users of torchrun type, and what they then expect from the machine.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/run_until.h"

namespace muster::test {
namespace {

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class DropInTest : public E2eTest {
 protected:
  // The program `name`, which is muster, with these arguments.
  Command StartAs(const std::string& name, std::vector<std::string> arguments,
                  std::vector<std::string> environment = {}) {
    const std::string path = Path(name);
    if (!std::filesystem::exists(path)) std::filesystem::create_symlink(MusterPath(), path);
    arguments.insert(arguments.begin(), path);
    for (const std::string& entry : Environment()) environment.push_back(entry);
    return Command(std::move(arguments), environment);
  }

  // A script that tells what it was given: "RANK WORLD_SIZE MASTER_PORT DEVICES: arguments".
  std::string TellingScript() {
    return Write(
        "tell.sh",
        "#!/bin/sh\necho $RANK $WORLD_SIZE $MASTER_PORT ${CUDA_VISIBLE_DEVICES:--}: \"$@\"\n",
        0755);
  }

  static std::set<std::string> SaidBy(Command& command) {
    EXPECT_EQ(command.Wait(), 0) << command.err();
    const std::vector<std::string> lines = Lines(command.out());
    return {lines.begin(), lines.end()};
  }
};

using LineSet = std::set<std::string>;

TEST_F(DropInTest, CalledAsTorchrunItIsMusterRun) {
  HeldPort port;
  Command torchrun = StartAs("torchrun", {"--nproc_per_node=2", "--master_port", port.number(),
                                          TellingScript(), "--r=16", "--d", "64"});
  EXPECT_EQ(SaidBy(torchrun), (LineSet{"0 2 " + port.number() + " -: --r=16 --d 64",
                                       "1 2 " + port.number() + " -: --r=16 --d 64"}));
}

TEST_F(DropInTest, ModuleOfTorchsNameIsTheCommand) {
  HeldPort port;
  Command run = StartAs("muster", {"-m", "torch.distributed.run", "--nproc_per_node", "1",
                                   "--master_port", port.number(), TellingScript(), "a"});
  EXPECT_EQ(SaidBy(run), (LineSet{"0 1 " + port.number() + " -: a"}));
  Command launch = StartAs("muster", {"-m", "torch.distributed.launch", "--nproc_per_node", "1",
                                      "--master_port", port.number(), TellingScript(), "a"});
  EXPECT_EQ(SaidBy(launch), (LineSet{"0 1 " + port.number() + " -: --local-rank=0 a"}));
}

TEST_F(DropInTest, LaunchOnSomeDevicesOfAMachine) {
  HeldPort port;
  Command launch = StartAs("muster",
                           {"launch", "--nproc_per_node", "4", "--master_port", port.number(),
                            TellingScript(), "--lr", "1"},
                           {"CUDA_VISIBLE_DEVICES=4,5,6,7"});
  const std::string common = " 4 " + port.number() + " 4,5,6,7: --local-rank=";
  EXPECT_EQ(SaidBy(launch), (LineSet{"0" + common + "0 --lr 1", "1" + common + "1 --lr 1",
                                     "2" + common + "2 --lr 1", "3" + common + "3 --lr 1"}));
}

TEST_F(DropInTest, LaunchOnTwoMachinesWithTheirRanks) {
  HeldPort port;
  std::vector<Command> nodes;
  for (const char* node_rank : {"0", "1"}) {
    nodes.push_back(
        StartAs("muster", {"launch", "--nnodes=2", std::string("--node_rank=") + node_rank,
                           "--nproc_per_node", "2", "--master_addr", "127.0.0.1", "--master_port",
                           port.number(), "--local-rank-style=underscore", TellingScript()}));
  }
  LineSet said;
  for (Command& node : nodes) said.merge(SaidBy(node));
  const std::string common = " 4 " + port.number() + " -: --local_rank=";
  EXPECT_EQ(said, (LineSet{"0" + common + "0", "1" + common + "1", "2" + common + "0",
                           "3" + common + "1"}));
}

TEST_F(DropInTest, ChosenDevicesReachTheWorkers) {
  HeldPort port;
  Command run = StartMuster({"--devices=4-5", "--virtual-local-rank", "--nproc-per-node=2",
                             "--master-port=" + port.number(), TellingScript()});
  EXPECT_EQ(SaidBy(run), (LineSet{"0 2 " + port.number() + " 4:", "1 2 " + port.number() + " 5:"}));
}

// Two experiments at once: torchrun's second one died of "Address already in use" (29500).
TEST_F(DropInTest, ExperimentsOnOneMachineDoNotMeet) {
  const std::string script = Write("meet.sh",
                                   "#!/bin/sh\necho $MASTER_PORT\n"
                                   "while [ ! -e " +
                                       Path("go") + " ]; do sleep 0.05; done\n",
                                   0755);
  Command one = StartMuster({"--devices=0,1", script});
  Command other = StartMuster({"--devices=2,3", script});
  ASSERT_TRUE(one.WaitForOut("\n")) << one.err();
  ASSERT_TRUE(other.WaitForOut("\n")) << other.err();
  EXPECT_NE(one.out(), other.out());

  Command third = StartMuster({"--devices=3,4", script});
  EXPECT_TRUE(third.WaitForErr("device 3 is also used by run")) << third.err();
  ASSERT_TRUE(third.WaitForOut("\n")) << third.err();

  // It is written a moment after the workers' start.
  std::string runs;
  EXPECT_TRUE(WaitUntil([&] {
    Command ps = StartAs("muster", {"ps"});
    EXPECT_EQ(ps.Wait(), 0);
    runs = ps.out();
    return runs.find("waiting") == std::string::npos;
  })) << runs;
  EXPECT_EQ(Lines(runs).size(), 4u) << runs;
  EXPECT_TRUE(Contains(runs, std::to_string(one.pid())));
  EXPECT_TRUE(Contains(runs, "2,3"));
  EXPECT_TRUE(Contains(runs, "running"));
  EXPECT_TRUE(Contains(runs, script));

  Write("go", "");
  EXPECT_EQ(one.Wait(), 0);
  EXPECT_EQ(other.Wait(), 0);
  EXPECT_EQ(third.Wait(), 0);
  Command after = StartAs("muster", {"ps"});
  EXPECT_EQ(after.Wait(), 0);
  EXPECT_EQ(after.out(), "");
}

TEST_F(DropInTest, NodesWithOneRankAreToldOfEachOther) {
  HeldPort port;
  const auto start = [&](const char* rank) {
    return StartMuster({"--nnodes=3", std::string("--node-rank=") + rank, "--master-addr=127.0.0.1",
                        "--master-port=" + port.number(), "--no-python", "true"});
  };
  Command first = start("0");
  Command one = start("1");
  // Which of the two comes first is open.
  Command other = start("1");
  EXPECT_EQ(first.Wait(), 3) << first.err();
  EXPECT_EQ(one.Wait(), 3) << one.err();
  EXPECT_EQ(other.Wait(), 3) << other.err();
  for (Command* node : {&first, &one, &other}) {
    EXPECT_TRUE(Contains(node->err(), "node rank 1")) << node->err();
    EXPECT_TRUE(Contains(node->err(), "give each node a --node-rank of its own"));
  }
}

TEST_F(DropInTest, SecondNodeWithRankZeroIsTold) {
  HeldPort port;
  const std::vector<std::string> arguments = {
      "--nnodes=2",  "--node-rank=0", "--master-addr=127.0.0.1", "--master-port=" + port.number(),
      "--no-python", "true"};
  Command one = StartMuster(arguments);
  Command other = StartMuster(arguments);
  EXPECT_EQ(one.Wait(), 3) << one.err();
  EXPECT_EQ(other.Wait(), 3) << other.err();
  for (Command* node : {&one, &other}) EXPECT_TRUE(Contains(node->err(), "node rank 0"));
}

TEST_F(DropInTest, StoreOfTheAgentAnswersTheWorkers) {
  // ADD "init/" +1 as PyTorch 1.13 sends it, and the answer: 8 bytes with the number of callers.
  const std::string script = Write("add.sh", R"(#!/bin/bash
[ "$TORCHELASTIC_USE_AGENT_STORE" = True ] || exit 9
exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT
printf '\3\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0' >&3
head -c 8 <&3 | od -An -tu8 | tr -d ' ' > $OUT/$RANK
)",
                                   0755);
  Command run = StartMuster({"--nproc-per-node=3", "--no-python", script}, {"OUT=" + Path("")});
  EXPECT_EQ(run.Wait(), 0) << run.err();
  LineSet answers;
  for (const char* rank : {"0", "1", "2"}) answers.insert(ReadFile(Path(rank)));
  EXPECT_EQ(answers, (LineSet{"1\n", "2\n", "3\n"}));
}

TEST_F(DropInTest, EachRoundHasAFreshStore) {
  const std::string script = Write("add.sh", R"(#!/bin/bash
exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT
printf '\3\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0' >&3
head -c 8 <&3 | od -An -tu8 | tr -d ' ' >> $OUT/answers
[ $TORCHELASTIC_RESTART_COUNT = 1 ]
)",
                                   0755);
  HeldPort fixed;
  for (const std::vector<std::string>& port :
       {std::vector<std::string>{}, {"--master-port=" + fixed.number()}}) {
    std::filesystem::remove(Path("answers"));
    std::vector<std::string> arguments = {"--max-restarts=1", "--no-python", script};
    arguments.insert(arguments.begin(), port.begin(), port.end());
    Command run = StartMuster(arguments, {"OUT=" + Path("")});
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_EQ(ReadFile(Path("answers")), "1\n1\n");
  }
}

TEST_F(DropInTest, DryRunShowsTheWorkersAndStartsNothing) {
  Command run =
      StartMuster({"--dry-run", "--nproc-per-node=2", "--no-python", "touch", Path("started")});
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_TRUE(Contains(run.out(), "RANK=1 \\\n"));
  EXPECT_TRUE(Contains(run.out(), "touch " + Path("started")));
  EXPECT_FALSE(std::filesystem::exists(Path("started")));
}

TEST_F(DropInTest, PrintedConfigIsJson) {
  Command run =
      StartMuster({"--print-config", "--nproc-per-node=2", "true"}, {"PET_MAX_RESTARTS=3"});
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_TRUE(Contains(run.out(), "\"max_restarts\": 3"));
}

TEST_F(DropInTest, ScriptRunByItsPathLeavesItsExceptionInTheErrorFiles) {
  if (!Succeeds({"/usr/bin/python3", "-c", ""})) GTEST_SKIP() << "there is no /usr/bin/python3";
  const std::string script = Write("fail.py",
                                   "import sys\n"
                                   "assert __name__ == '__main__', __name__\n"
                                   "raise ValueError('no such layer: ' + sys.argv[1])\n");
  Command run =
      StartMuster({"--run-path", script, "conv9"},
                  {"PYTHON_EXEC=/usr/bin/python3", "TORCHELASTIC_ERROR_FILE=" + Path("root.json")});
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_TRUE(Contains(run.err(), "  message   : ValueError: no such layer: conv9"));
  EXPECT_TRUE(Contains(run.err(), "in <module>"));
  EXPECT_TRUE(Contains(ReadFile(Path("root.json")), "\"errorCode\":1"));
  EXPECT_TRUE(Contains(ReadFile(Path("root.json")), "ValueError: no such layer: conv9"));
}

TEST_F(DropInTest, WorkerWhoseWatchdogTimerExpiresIsKilledAndTheRunSaysWhy) {
  const std::string script = Write("overdue.sh", R"(#!/bin/sh
printf '{"version":1,"pid":%d,"scope_id":"step","expiration_time":1.5,"signal":9}\n' $$ > $TORCHELASTIC_TIMER_FILE
while :; do sleep 0.05; done
)",
                                   0755);
  Command run = StartMuster({script}, {"TORCHELASTIC_ENABLE_FILE_TIMER=1"});
  EXPECT_EQ(run.Wait(), 1) << run.err();
  EXPECT_EQ(ReportField(run.err(), "reason"),
            "was killed by muster (SIGKILL), as its watchdog timer 'step' expired");
  Command without = StartMuster({"--no-python", "sh", "-c", "[ -z $TORCHELASTIC_TIMER_FILE ]"});
  EXPECT_EQ(without.Wait(), 0) << without.err();
}

TEST_F(DropInTest, TeedLinesHaveThePrefixAskedForAndMatchesAreCopied) {
  const std::string script =
      Write("train.sh", "#!/bin/sh\necho loss 0.$RANK\necho noise\necho bad >&2\n", 0755);
  Command run = StartMuster({"--nproc-per-node=3", "-t", "3", "--log-dir", Path("logs"),
                             "--local-ranks-filter=0,2", "--duplicate-stdout-filters=loss",
                             "--duplicate-stderr-filters=bad,worse",
                             "--log-line-prefix-template=[${role_name} ${rank}] ", script});
  EXPECT_EQ(SaidBy(run), (LineSet{"[default 0] loss 0.0", "[default 0] noise",
                                  "[default 2] loss 0.2", "[default 2] noise"}));
  EXPECT_TRUE(Contains(run.err(), "[default 2] bad\n"));
  EXPECT_EQ(run.err().find("[default 1] bad"), std::string::npos);
  std::string filtered_out, filtered_err, quiet;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Path("logs"))) {
    const std::string path = entry.path();
    if (path.ends_with("/attempt_0/filtered_stdout.log")) filtered_out = ReadFile(path);
    if (path.ends_with("/attempt_0/filtered_stderr.log")) filtered_err = ReadFile(path);
    if (path.ends_with("/attempt_0/1/stdout.log")) quiet = ReadFile(path);
  }
  // Files have what the console leaves out.
  EXPECT_EQ(quiet, "loss 0.1\nnoise\n");
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_TRUE(
        Contains(filtered_out, std::string("[default ") + rank + "] loss 0." + rank + "\n"));
    EXPECT_TRUE(Contains(filtered_err, std::string("[default ") + rank + "] bad\n"));
  }
  EXPECT_EQ(filtered_out.find("noise"), std::string::npos);
}

TEST_F(DropInTest, RestartIsInTheEventLogAndItsTimesAreTold) {
  Command run = StartMuster({"--max-restarts=1", "--event-log", Path("events"), "--no-python", "sh",
                             "-c", "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 7"});
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_TRUE(Contains(run.err(),
                       "  round 0 ended: rank 0 exited with code 7; the workers of round 1 ran "));
  std::string events;
  for (const std::string& line : Lines(ReadFile(Path("events")))) {
    const std::string key = "\"event\":\"";
    const std::size_t at = line.find(key) + key.size();
    events += line.substr(at, line.find('"', at) - at) + " ";
  }
  // Which of the two comes first is open: the rendezvous answers while the workers end.
  const std::string before = "log_opened joining assigned workers_started worker_failed ";
  const std::string after = "joining assigned workers_started workers_gone verdict ";
  EXPECT_TRUE(events == before + "workers_gone told_to_stop " + after ||
              events == before + "told_to_stop workers_gone " + after)
      << events;
}

TEST_F(DropInTest, SignalsThatAreListedEndTheRunAndOthersPass) {
  const std::string script = Write("traps.sh",
                                   "#!/bin/sh\n"
                                   "trap 'echo got USR2' USR2\n"
                                   "trap 'echo got USR1; exit 0' USR1\n"
                                   "echo ready\nwhile :; do sleep 0.05; done\n",
                                   0755);
  Command run = StartMuster({"--signals-to-handle=SIGUSR1,SIGTERM", script});
  ASSERT_TRUE(run.WaitForOut("ready\n"));
  run.Signal(SIGUSR2);
  ASSERT_TRUE(run.WaitForOut("got USR2\n"));
  run.Signal(SIGUSR1);
  EXPECT_EQ(run.Wait(), 128 + SIGUSR1) << run.err();
  EXPECT_TRUE(Contains(run.out(), "got USR1\n"));
}

}  // namespace
}  // namespace muster::test
