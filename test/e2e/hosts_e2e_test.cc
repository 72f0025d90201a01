// One command starts a job on hosts with a real sshd each: its output, and how it ends.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/e2e/ssh_hosts.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::UnorderedElementsAre;

// Prints where it is, and stays.
constexpr char kStays[] = "echo worker $RANK of $WORLD_SIZE is ready; sleep 10000 & wait";

class HostsTest : public SshHostsTest {
 protected:
  static void WaitForWorkers(Command& run, int count) {
    for (int rank = 0; rank < count; ++rank) {
      ASSERT_TRUE(run.WaitForOut("worker " + std::to_string(rank) + " of "))
          << run.out() << run.err();
    }
  }
};

class HostsWithSshdTest : public HostsTest {
 protected:
  // Each test takes those that it names.
  void SetUp() override { MakeHosts(4); }
};

TEST_F(HostsWithSshdTest, OneCommandStartsWorkersOnEveryHost) {
  Command run = StartOnHosts({"--hosts=node0:2,node1"},
                             "echo rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of "
                             "$LOCAL_WORLD_SIZE, store at $MASTER_ADDR");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(Lines(run.out()),
              UnorderedElementsAre("[default0]:rank 0 of 3, local 0 of 2, store at 10.98.0.1",
                                   "[default1]:rank 1 of 3, local 1 of 2, store at 10.98.0.1",
                                   "[default2]:rank 2 of 3, local 0 of 1, store at 10.98.0.1"))
      << run.err();
  ExpectNothingLeft();
}

TEST_F(HostsTest, TreeOfHostsThatStartOneAnotherIsOneJob) {
  ASSERT_NO_FATAL_FAILURE(MakeHosts(8));
  if (IsSkipped()) return;
  const std::string file = Write("hosts.txt", "# eight hosts\nnode0 slots=2\nnode[1-6]\nnode7:2\n");
  Command run = StartOnHosts({"--hostfile", file, "--fanout=2"},
                             "echo rank $RANK of $WORLD_SIZE, node $GROUP_RANK");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(
      Lines(run.out()),
      UnorderedElementsAre("[default0]:rank 0 of 10, node 0", "[default1]:rank 1 of 10, node 0",
                           "[default2]:rank 2 of 10, node 1", "[default3]:rank 3 of 10, node 2",
                           "[default4]:rank 4 of 10, node 3", "[default5]:rank 5 of 10, node 4",
                           "[default6]:rank 6 of 10, node 5", "[default7]:rank 7 of 10, node 6",
                           "[default8]:rank 8 of 10, node 7", "[default9]:rank 9 of 10, node 7"))
      << run.err();
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, RunsOfAllHostsAreListedAndWhoDoesNotAnswerIsNamed) {
  Command run = StartOnHosts({"--hosts=node0,node1", "--rdzv-id=big"}, kStays);
  WaitForWorkers(run, 2);
  StopSshd(2);
  const auto ps = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {std::filesystem::absolute(MusterPath()), "ps"});
    return StartWhereTyped(std::move(flags));
  };
  Command all = ps({"--hosts=node[0-2]", "--launch-with=ssh {host} {command}"});
  EXPECT_EQ(all.Wait(), 1) << all.err();
  EXPECT_THAT(all.out(), MatchesRegex("HOST +RUN +PID .*\nnode0 +big .*\nnode1 +big .*"));
  EXPECT_THAT(all.err(), HasSubstr("muster ps: node2 cannot be reached: ssh: connect to host"));
  Command one = ps({"-H", "node1", "--json"});
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_THAT(one.out(), HasSubstr("\"host\": \"node1\""));
  Command wrong = ps({"--hosts=node["});
  EXPECT_EQ(wrong.Wait(), 2);
  EXPECT_EQ(wrong.err(),
            "muster ps: --hosts=node[ has 'node[', which has a [ without its ]; write node[1-3]\n");
  EndJob(run);
}

// `muster ps --hosts` waited forever for a host that had answered and on which `ps` then hung.
TEST_F(HostsTest, HostThatAnswersAndThenTellsNothingIsNamed) {
  // Passes on what the second host says, except its exit, whose frames begin with 1a.
  const std::string shell = Write("shell", R"(#!/bin/sh
[ $1 = second ] || exec sh -c "$2"
sh -c "$2" | /usr/bin/python3 -c '
import sys
source, sink = sys.stdin.buffer, sys.stdout.buffer
head = b""
while not head.endswith(b"muster launch 1"):
    head += source.read(1) or sys.exit()
    sink.write(head[-1:])
    sink.flush()
while (size := source.read(4)):
    message = source.read(int.from_bytes(size, "big"))
    if message[:1] != b"\x1a":
        sink.write(size + message)
        sink.flush()
'
)",
                                  0755);
  Command ps({MusterPath(), "ps", "--hosts=first,second", "--timeout=2",
              "--launch-with=" + shell + " {host} {command}"},
             Environment());
  EXPECT_EQ(ps.Wait(), 1) << ps.err();
  EXPECT_THAT(ps.err(), HasSubstr("muster ps: second has not reported within 2 s\n"));
  ExpectNothingLeft();
}

// `--timeout=3` took 10.5 s for a silent host, as it was tried three times.
TEST_F(HostsTest, HostThatIsSilentIsAskedOnce) {
  const std::string link =
      Write("link", "#!/bin/sh\necho >> " + Path("tried") + "\nexec sleep 10000\n", 0755);
  Command ps({MusterPath(), "ps", "--hosts=first", "--timeout=1",
              "--launch-with=" + link + " {host} {command}"},
             Environment());
  EXPECT_EQ(ps.Wait(), 1) << ps.err();
  EXPECT_THAT(ps.err(),
              HasSubstr("muster ps: first cannot be reached: it has not answered within 1 s\n"));
  EXPECT_EQ(ReadAll(Path("tried")), "\n");
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, SecretAndScriptAreNotInAnybodysCommandLine) {
  Command run = StartOnHosts({"--hosts=node0,node1", "--export=SECRET_WORD=xyzzy"},
                             "echo worker $RANK of $SECRET_WORD; sleep 10000 & wait");
  WaitForWorkers(run, 2);
  EXPECT_TRUE(Processes(0, "xyzzy").empty());
  EXPECT_TRUE(Processes(-1, "_host").size() == 2 && Processes(-1, "sleep 10000").size() == 1)
      << "the two connections, which name no script, and the command itself, which does";
  EXPECT_TRUE(Contains(run.out(), "worker 1 of xyzzy"));
  EndJob(run);
}

// A musterd on the machine where the command is typed, which hosts reach with its user's token.
TEST_F(HostsWithSshdTest, NamedDaemonServesTheRendezvous) {
  ASSERT_TRUE(Succeeds({MusterPath(), "token", "new", Path("token")}));
  Command daemon = StartWhereTyped({DaemonPath(), "--listen=10.98.0.254:29400", "--ready-fd=1",
                                    "--token-file=" + Path("token")});
  ASSERT_TRUE(daemon.WaitForOut("\n")) << daemon.err();
  Command run = StartOnHosts({"--hosts=node0,node1", "--rdzv-endpoint=10.98.0.254:29400",
                              "--rdzv-id=job7", "--token-file", Path("token")},
                             "echo rank $RANK of $TORCHELASTIC_RUN_ID at $MUSTER_RDZV_ENDPOINT");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(Lines(run.out()),
              UnorderedElementsAre("[default0]:rank 0 of job7 at 10.98.0.254:29400",
                                   "[default1]:rank 1 of job7 at 10.98.0.254:29400"))
      << run.err();
  daemon.Signal(SIGTERM);
  EXPECT_NE(daemon.Wait(), std::nullopt);
  ExpectNothingLeft();
}

// A login shell that prints something, and hosts that are reached by another command than ssh.
TEST_F(HostsTest, AnotherCommandThanSshConnects) {
  const std::string shell =
      Write("shell", "#!/bin/sh\necho Welcome to $1\nexec sh -c \"$2\"\n", 0755);
  std::vector<std::string> argv = {MusterPath(), "run", "--hosts=first:2,second", "--no-python",
                                   "--launch-with=" + shell + " {host} {command}"};
  argv.insert(argv.end(), {"sh", "-c", "echo rank $RANK of $WORLD_SIZE"});
  Daemon daemon = StartDaemon();
  argv.insert(argv.begin() + 2, "--rdzv-endpoint=" + daemon.endpoint);
  Command run(argv, Environment());
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(Lines(run.out()),
              UnorderedElementsAre("[default0]:rank 0 of 3", "[default1]:rank 1 of 3",
                                   "[default2]:rank 2 of 3"))
      << run.err();
  daemon.process.Signal(SIGTERM);
  EXPECT_NE(daemon.process.Wait(), std::nullopt);
  ExpectNothingLeft();
}

// "docker exec without -i: two minutes of silence, and then 'ended with exit code 0'."
TEST_F(HostsTest, LinkWithoutAnInputIsNamed) {
  for (const char* const nothing : {"</dev/null", "<&-"}) {
    const std::string link =
        Write("link", absl::StrCat("#!/bin/sh\nexec sh -c \"$2\" ", nothing, "\n"), 0755);
    std::vector<std::string> argv = {MusterPath(), "run", "--hosts=127.0.0.1:1,127.0.0.2:1",
                                     "--launch-with=" + link + " {host} {command}"};
    argv.insert(argv.end(), {"--no-python", "true"});
    Command run(argv, Environment());
    EXPECT_EQ(run.Wait(), 3) << nothing;
    EXPECT_TRUE(Contains(run.err(), "its input ended before anything was received")) << nothing;
    ExpectNothingLeft();
  }
}

// "My virtual environment is on all hosts, and the script ran under the system's Python."
TEST_F(HostsTest, PythonOfTheCommandRunsTheScriptWhereTheHostHasIt) {
  std::filesystem::create_directories(Path("venv/bin"));
  const std::string python =
      Write("venv/bin/python3", "#!/bin/sh\necho under venv: $2; echo $MUSTER_PYTHON\n", 0755);
  const std::string script = Write("train.py", "");
  const std::string link = Write("link", "#!/bin/sh\nPATH=/usr/bin:/bin exec sh -c \"$2\"\n", 0755);
  const auto run = [&] {
    std::vector<std::string> environment = Environment();
    environment.push_back("PATH=" + Path("venv/bin") + ":/usr/bin:/bin");
    environment.push_back("PYTHON_EXEC=");
    return Command({MusterPath(), "run", "--hosts=127.0.0.1",
                    "--launch-with=" + link + " {host} {command}", script},
                   environment);
  };
  Command both = run();
  EXPECT_EQ(both.Wait(), 0) << both.err();
  EXPECT_EQ(both.out(), "[default0]:under venv: " + script + "\n[default0]:\n")
      << "and workers have no variable of it";
  EXPECT_FALSE(Contains(both.err(), "does not have")) << both.err();

  // The host is this machine, so it loses its Python only after the command was checked.
  Write("link", "#!/bin/sh\nrm -f " + python + "\nPATH=/usr/bin:/bin exec sh -c \"$2\"\n", 0755);
  Command without = run();
  const bool has_python = Succeeds({"sh", "-c", "PATH=/usr/bin:/bin command -v python3"});
  EXPECT_EQ(without.Wait(), has_python ? 0 : 2) << without.err();
  EXPECT_TRUE(Contains(without.err(), "this host does not have " + python +
                                          ", the Python where the command was typed"));
  ExpectNothingLeft();
}

TEST_F(HostsTest, HostWithoutMusterSaysSo) {
  const std::string shell =
      Write("shell", "#!/bin/sh\necho muster: not here >&2; exit 127\n", 0755);
  Command run({MusterPath(), "run", "--hosts=first", "--launch-with=" + shell + " {host} {command}",
               "--no-python", "true"},
              Environment());
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_EQ(run.err(), "muster run: first cannot be reached: muster: not here\n");
  ExpectNothingLeft();
}

TEST_F(HostsTest, HostThatNeverAnswersIsGivenUp) {
  Command run(
      {MusterPath(), "run", "--hosts=first", "--launch-with=sh -c 'sleep 10000; {host} {command}'",
       "--rdzv-conf=connect_timeout=1", "--no-python", "true"},
      Environment());
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_EQ(run.err(), "muster run: first cannot be reached: it has not answered within 1 s\n");
  ExpectNothingLeft();
}

// Ctrl-C left a process behind that the command to reach a host had started beside the connection.
TEST_F(HostsTest, WhatTheWayToAHostLeavesBehindEndsWithIt) {
  const std::string link =
      Write("link", "#!/bin/sh\nsleep 10000 </dev/null >/dev/null 2>&1 &\nsh -c \"$2\"\n", 0755);
  const auto run_on_host = [&](const std::string& script) {
    return Command(
        {MusterPath(), "run", "--hosts=127.0.0.1:1", "--launch-with=" + link + " {host} {command}",
         "--no-python", "sh", "-c", script},
        Environment());
  };
  Command done = run_on_host("exit 0");
  EXPECT_EQ(done.Wait(), 0) << done.err();
  ExpectNothingLeft();
  Command interrupted = run_on_host("echo ready; exec sleep 10000");
  ASSERT_TRUE(interrupted.WaitForOut("ready")) << interrupted.err();
  interrupted.Signal(SIGINT);
  EXPECT_EQ(interrupted.Wait(), 128 + SIGINT) << interrupted.err();
  ExpectNothingLeft();
}

TEST_F(HostsTest, CtrlCEndsTheWaitForHosts) {
  Command run({MusterPath(), "run", "--hosts=first",
               "--launch-with=sh -c 'sleep 10000; {host} {command}'", "--no-python", "true"},
              Environment());
  ASSERT_TRUE(WaitForProcesses(mark(), 3));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 128 + SIGINT) << run.err();
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, FailureIsReportedOnceAndHasItsExitCode) {
  Command run = StartOnHosts({"--hosts=node[0-1]:2", "--exit-code=worker"},
                             "[ $RANK = 3 ] && { echo it breaks >&2; exit 7; }; sleep 10000");
  EXPECT_EQ(run.Wait(), 7) << run.err();
  EXPECT_EQ(ReportField(run.err(), "rank"), "3 (local_rank: 1)") << run.err();
  EXPECT_TRUE(Contains(run.err(), "[default3]:it breaks"));
  const std::size_t first = run.err().find("FAILED");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(run.err().find("FAILED", first + 1), std::string::npos) << run.err();
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, HostThatCannotBeReachedIsNamedWithSshsReason) {
  StopSshd(1);
  Command run = StartOnHosts({"--hosts=node0,node1"}, kStays);
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_TRUE(Contains(run.err(),
                       "muster run: node1 cannot be reached: ssh: connect to host 10.98.0.2 port "
                       "22: Connection refused\n"));
  ExpectNothingLeft();
}

// ssh asks a question, which nobody can answer for many hosts at once.
TEST_F(HostsWithSshdTest, HostWhoseKeyIsNotKnownIsNamed) {
  const std::vector<std::string> known = Lines(ReadAll(Path("hosts/known_hosts")));
  ASSERT_EQ(known.size(), 4u);
  Write("hosts/known_hosts", known[0] + "\n");
  Command run = StartOnHosts({"--hosts=node0,node1"}, kStays);
  EXPECT_EQ(run.Wait(), 3) << run.err();
  EXPECT_TRUE(
      Contains(run.err(), "muster run: node1 cannot be reached: Host key verification failed.\n"));
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, HostBehindAnotherIsReachedAsTheUsersConfigurationSays) {
  const std::string config = Path("hosts/ssh_config");
  const std::string before = ReadAll(config);
  Write("hosts/ssh_config",
        "Match host node1 exec \"ip route | grep -q unreachable\"\n"
        "  ProxyJump node0\n" +
            before);
  ASSERT_TRUE(OnHost(-1, "ip route add unreachable 10.98.0.2/32"));
  Command run = StartOnHosts({"--hosts=node0,node1"}, "echo rank $RANK of $WORLD_SIZE");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(Lines(run.out()),
              UnorderedElementsAre("[default0]:rank 0 of 2", "[default1]:rank 1 of 2"))
      << run.err();
  ExpectNothingLeft();
}

// ssh's own shared connections, with their master process, are the user's and stay.
TEST_F(HostsWithSshdTest, ConnectionThatTheUsersConfigurationSharesIsUsedAndStays) {
  const std::string config = Path("hosts/ssh_config");
  const std::string socket = absl::StrCat("/tmp/muster-test-", getpid(), "-%C");
  Write("hosts/ssh_config", absl::StrCat("Host *\n  ControlMaster auto\n  ControlPersist 600\n"
                                         "  ControlPath ",
                                         socket, "\n", ReadAll(config)));
  for (int i = 0; i < 2; ++i) {
    Command run = StartOnHosts({"--hosts=node0"}, "echo rank $RANK of $WORLD_SIZE");
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_THAT(Lines(run.out()), UnorderedElementsAre("[default0]:rank 0 of 1")) << run.err();
    EXPECT_EQ(Sessions(0).size(), 1u) << "of sshd, for all connections";
  }
  EXPECT_EQ(StartWhereTyped({"ssh", "-O", "exit", "node0"}).Wait(), 0) << "it was still there";
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, JobThatMayBeSmallerStartsWithoutUnreachableHosts) {
  StopSshd(0);
  Command run =
      StartOnHosts({"--hosts=node[0-2]", "--nnodes=2:3", "--rdzv-conf=last_call_timeout=1"},
                   "echo rank $RANK of $WORLD_SIZE, store at $MASTER_ADDR");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(Lines(run.out()), UnorderedElementsAre("[default0]:rank 0 of 2, store at 10.98.0.2",
                                                     "[default1]:rank 1 of 2, store at 10.98.0.2"))
      << run.err();
  EXPECT_TRUE(Contains(run.err(), "muster run: node0 cannot be reached: ssh: connect to host"));
  ExpectNothingLeft();
}

TEST_F(HostsWithSshdTest, CtrlCReachesWorkersOnEveryHost) {
  Command run = StartOnHosts({"--hosts=node[0-2]", "--fanout=1"},
                             "trap 'echo worker $RANK was interrupted; kill $!; exit 0' INT TERM\n"
                             "sleep 10000 &\n"
                             "echo worker $RANK of $WORLD_SIZE is ready\n"
                             "wait");
  WaitForWorkers(run, 3);
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 128 + SIGINT) << run.err();
  for (const char* line :
       {"[default0]:worker 0 was interrupted", "[default1]:worker 1 was interrupted",
        "[default2]:worker 2 was interrupted"}) {
    EXPECT_TRUE(Contains(run.out(), line));
  }
  ExpectNothingLeft();
}

// "muster stop killed my workers at once": nodes on this machine got the signal twice.
TEST_F(HostsTest, StopAsksEachNodeOnce) {
  const std::string link = Write("link", "#!/bin/sh\nexec sh -c \"$2\"\n", 0755);
  std::vector<std::string> argv = {MusterPath(),
                                   "run",
                                   "--detach",
                                   "--rdzv-id=stop-hosts",
                                   "--hosts=127.0.0.1:1,127.0.0.2:1",
                                   "--no-python",
                                   "--launch-with=" + link + " {host} {command}"};
  argv.insert(argv.end(), {"sh", "-c",
                           "trap 'sleep 0.3; echo saved $RANK; exit' TERM; echo ready $RANK; "
                           "while :; do sleep 0.02; done"});
  std::vector<std::string> environment = Environment();
  environment.push_back("XDG_STATE_HOME=" + Path("state"));
  EXPECT_EQ(Command(argv, environment).Wait(), 0);
  Command attached({MusterPath(), "attach", "stop-hosts"}, environment);
  ASSERT_TRUE(attached.WaitForOut("ready 0"));
  ASSERT_TRUE(attached.WaitForOut("ready 1"));
  EXPECT_EQ(Command({MusterPath(), "stop", "stop-hosts"}, environment).Wait(), 0);
  EXPECT_EQ(attached.Wait(), 128 + SIGTERM);
  EXPECT_TRUE(Contains(attached.out(), "[default0]:saved 0\n"));
  EXPECT_TRUE(Contains(attached.out(), "[default1]:saved 1\n"));
  ExpectNothingLeft();
}

// "The link of one node was cut, and the whole night's training with it."
TEST_F(HostsWithSshdTest, NodeWhoseConnectionIsKilledIsStartedAgain) {
  Command run = StartOnHosts({"--hosts=node0,node1"},
                             "echo worker $RANK of $WORLD_SIZE is ready in round $MUSTER_ROUND; "
                             "sleep 10000 & wait");
  WaitForWorkers(run, 2);
  const std::vector<pid_t> sessions = Sessions(1);
  ASSERT_EQ(sessions.size(), 1u);
  kill(sessions.front(), SIGKILL);
  EXPECT_TRUE(run.WaitForErr("muster run: node1 was lost: ")) << run.err();
  EXPECT_TRUE(run.WaitForOut("worker 1 of 2 is ready in round 1")) << run.out() << run.err();
  EndJob(run);
}

// "docker exec hung with its machine, and the job waited for that node until I looked." Not every
// command notices that its host is gone.
TEST_F(HostsTest, HostThatFallsSilentIsStartedAgain) {
  const std::string shell = Write("shell", "#!/bin/sh\nexec sh -c \"$2\"\n", 0755);
  Daemon daemon = StartDaemon();
  Command run(
      {MusterPath(), "run", "--hosts=first,second", "--rdzv-endpoint=" + daemon.endpoint,
       "--nnodes=1:2", "--launch-with=" + shell + " {host} {command}", "--no-python", "sh", "-c",
       "echo worker $RANK of $WORLD_SIZE is ready in round $MUSTER_ROUND; sleep 10000"},
      Environment());
  WaitForWorkers(run, 2);
  const std::vector<pid_t> hosts = ChildrenOf(run.pid());
  ASSERT_EQ(hosts.size(), 2u);
  kill(hosts.back(), SIGSTOP);
  // It takes a little longer than one wait may.
  const std::string lost = " was lost: nothing was heard from it for 30 s";
  EXPECT_TRUE(run.WaitForErr(lost) || run.WaitForErr(lost)) << run.err();
  EXPECT_TRUE(run.WaitForOut("worker 1 of 2 is ready in round 2")) << run.out() << run.err();
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(std::chrono::seconds(60)), 128 + SIGTERM) << run.err();
  daemon.process.Signal(SIGTERM);
  EXPECT_NE(daemon.process.Wait(), std::nullopt);
  ExpectNothingLeft();
}

// Every line of all ranks arrives complete, however slowly it is read.
TEST_F(HostsWithSshdTest, SlowReaderGetsEveryLine) {
  constexpr int kLines = 20'000;
  Command run = StartOnHosts({"--hosts=node[0-3]", "--fanout=2"},
                             "seq -f \"line %.0f of $RANK, which is long enough to fill pipes "
                             "and windows -----------------\" " +
                                 std::to_string(kLines));
  // Until it is read, everything blocks: the pipes are full.
  ASSERT_TRUE(run.WaitForOut("line 1 of 0"));
  EXPECT_EQ(run.Wait(), 0) << run.err();
  std::set<std::string> lines;
  for (const std::string& line : Lines(run.out())) lines.insert(line);
  EXPECT_EQ(lines.size(), 4u * kLines);
  EXPECT_EQ(
      lines.count("[default3]:line 20000 of 3, which is long enough to fill pipes and windows "
                  "-----------------"),
      1u);
  ExpectNothingLeft();
}

// A process of the launch tree: where it runs, what its command line contains, and what is reported
// of its death if a process is left to report it.
struct Victim {
  const char* name;
  int host;
  const char* part;
  const char* said = "muster run: ";
};

class KilledProcessTest : public HostsWithSshdTest, public testing::WithParamInterface<Victim> {};

// "After kill -9 of mpirun, half of the nodes still had processes on their GPUs."
TEST_P(KilledProcessTest, LeavesNothingOnAnyHost) {
  Command run = StartOnHosts({"--hosts=node[0-2]", "--fanout=1", "--shutdown-timeout=5"}, kStays);
  WaitForWorkers(run, 3);
  const std::vector<pid_t> found = Processes(GetParam().host, GetParam().part);
  ASSERT_FALSE(found.empty());
  for (const pid_t pid : found) kill(pid, SIGKILL);
  // The job continues where it can, until it is told to stop.
  if (run.WaitForErr(GetParam().said)) run.Signal(SIGTERM);
  EXPECT_NE(run.Wait(std::chrono::seconds(60)), std::nullopt) << run.err();
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(Victims, KilledProcessTest,
                         testing::Values(Victim{"TheCommandItself", -1, " run --hosts"},
                                         Victim{"ItsConnection", -1, "ServerAliveInterval"},
                                         Victim{"FirstHost", 0, "muster _host"},
                                         Victim{"FirstAgent", 0, " run --prefix"},
                                         Victim{"FirstHostsConnection", 0, "ServerAliveInterval"},
                                         Victim{"SecondHost", 1, "muster _host"},
                                         Victim{"SecondAgent", 1, " run --prefix",
                                                "is started again"},
                                         Victim{"LastHost", 2, "muster _host"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::test
