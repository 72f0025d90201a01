// Mistakes of users: each gives one sentence that names the problem, the right exit code, and no
// stack trace.
#include <csignal>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class BadInputTest : public E2eTest {
 protected:
  // The program ends with `exit_code` and has said one sentence, which begins with `speaker` and
  // contains `part`. Before it may come one warning, while it was still trying.
  static void ExpectSentence(Command& command, int exit_code, const std::string& speaker,
                             const std::string& part, std::size_t max_warnings = 0) {
    EXPECT_EQ(command.Wait(), exit_code) << command.err();
    EXPECT_EQ(command.out(), "");
    const std::vector<std::string> lines = Lines(command.err());
    ASSERT_FALSE(lines.empty());
    EXPECT_TRUE(lines.back().starts_with(speaker + ": ")) << command.err();
    EXPECT_TRUE(Contains(lines.back(), part));
    EXPECT_LE(lines.size(), 1 + max_warnings) << command.err();
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
      EXPECT_TRUE(lines[i].starts_with("W") && lines[i].find(" muster] ") != std::string::npos)
          << command.err();
    }
  }

  static std::vector<std::string> Meet(const std::string& endpoint, const std::string& conf) {
    return {"--nnodes=2", "--rdzv-endpoint=" + endpoint, "--rdzv-conf=" + conf, "--no-python",
            "true"};
  }

  // As a user does before the first job that other machines can reach.
  static void MakeToken() {
    Command command({MusterPath(), "token", "new"});
    EXPECT_EQ(command.Wait(), 0) << command.err();
  }
};

TEST_F(BadInputTest, MistakesOnTheCommandLine) {
  const struct {
    std::vector<std::string> arguments;
    std::string part;
  } table[] = {
      {{"--bogus", "x.py"}, "unknown flag '--bogus'"},
      {{"--nnodes", "4:2", "x.py"}, "--nnodes 4:2 has its minimum above its maximum"},
      {{"--nnodes=two", "x.py"}, "two"},
      {{"--nproc-per-node", "0", "x.py"}, "--nproc-per-node 0 starts no worker"},
      {{"--nnodes=2", "x.py"}, "--nnodes=2 needs --rdzv-endpoint=HOST:PORT"},
      {{"--rdzv-endpoint=host:99999", "--nnodes=2", "x.py"}, "--rdzv-endpoint=host:99999"},
      {{"--standalone"}, "no script to run"},
      {{"--standalone", "no_such.py"}, "cannot run 'no_such.py': no such file"},
  };
  for (const auto& row : table) {
    Command muster = StartMuster(row.arguments);
    ExpectSentence(muster, 2, "muster run", row.part);
  }
}

TEST_F(BadInputTest, LogDirectoryIsAFile) {
  const std::string file = Write("file", "");
  Command muster = StartMuster({"--standalone", "--log-dir=" + file, "--no-python", "true"});
  ExpectSentence(muster, 4, "muster run", "cannot create log directory " + file);
}

// "The disk was full, so my script read half of --print-config and went on with it."
TEST_F(BadInputTest, AnswerThatCannotBeWrittenIsNoSuccess) {
  const struct {
    std::string command;
    std::string speaker;
    int exit_code;
  } table[] = {
      {MusterPath() + " --version", "muster", 4},
      {MusterPath() + " --help", "muster", 4},
      {MusterPath() + " run --help", "muster run", 4},
      {MusterPath() + " run --dry-run --standalone --no-python true", "muster run", 4},
      {MusterPath() + " run --print-config --standalone --no-python true", "muster run", 4},
      {MusterPath() + " kv --help", "muster kv", 4},
      {MusterPath() + " status --help", "muster status", 4},
      {MusterPath() + " top --help", "muster top", 4},
      {MusterPath() + " store --help", "muster store", 4},
      {DaemonPath() + " --help", "musterd", 1},
  };
  for (const auto& row : table) {
    Command command({"/bin/sh", "-c", "exec " + row.command + " >/dev/full"});
    ExpectSentence(command, row.exit_code, row.speaker, "write stdout: No space left on device",
                   /*max_warnings=*/1);
  }
}

TEST_F(BadInputTest, SecondDaemonOnAPort) {
  Daemon daemon = StartDaemon();
  Command second({DaemonPath(), "--listen=" + daemon.endpoint});
  ExpectSentence(second, 3, "musterd",
                 "listen on " + daemon.endpoint +
                     ": Address already in use; is another musterd running there?");
  daemon.process.Signal(SIGTERM);
  EXPECT_EQ(daemon.process.Wait(), 0);
}

TEST_F(BadInputTest, DaemonIsGivenNonsense) {
  Command flag({DaemonPath(), "--bogus"});
  ExpectSentence(flag, 2, "musterd", "--bogus");
  Command port({DaemonPath(), "--listen=127.0.0.1:99999"});
  ExpectSentence(port, 2, "musterd", "--listen=127.0.0.1:99999");
  MakeToken();
  Command host({DaemonPath(), "--listen=nosuch.invalid:1"});
  ExpectSentence(host, 3, "musterd", "listen on nosuch.invalid:1: ");
}

TEST_F(BadInputTest, PortForTheWorkersIsInUse) {
  HeldPort port;
  port.Listen();
  Command muster = StartMuster({"--master-port=" + port.number(), "--no-python", "true"});
  ExpectSentence(muster, 4, "muster run",
                 "this node cannot run its workers: cannot serve the workers' store: listen on " +
                     port.endpoint() + ": Address already in use; choose another --master-port");
  Command held = StartMuster(
      {"--worker-store=worker", "--master-port=" + port.number(), "--no-python", "true"});
  ExpectSentence(held, 4, "muster run",
                 "hold port " + port.number() + " for the workers: Address already in use");
}

// The port of the rendezvous is held by something that takes connections and says nothing.
TEST_F(BadInputTest, WhatListensAtTheEndpointIsNotMuster) {
  HeldPort port;
  port.Listen();
  Command muster = StartMuster(Meet(port.endpoint(), "connect_timeout=1"));
  ExpectSentence(muster, 3, "muster run",
                 "cannot reach the rendezvous at " + port.endpoint() + " within 1 s", 1);
}

TEST_F(BadInputTest, EndpointDoesNotResolve) {
  MakeToken();
  Command muster = StartMuster(Meet("nosuch.invalid:29400", "connect_timeout=1"));
  ExpectSentence(muster, 3, "muster run",
                 "cannot reach the rendezvous at nosuch.invalid:29400 within 1 s: its name does "
                 "not resolve",
                 1);
}

TEST_F(BadInputTest, NobodyAnswersAtTheMasterAddress) {
  const HeldPort port;
  Command muster = StartMuster({"--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1",
                                "--master-port=" + port.number(), "--rdzv-conf=connect_timeout=1",
                                "--no-python", "true"});
  ExpectSentence(
      muster, 3, "muster run",
      "cannot reach the rendezvous at " + port.endpoint() + " within 1 s: Connection refused", 1);
}

TEST_F(BadInputTest, OneOfTwoNodesNeverComes) {
  const HeldPort port;
  Command muster = StartMuster(Meet(port.endpoint(), "join_timeout=1"));
  ExpectSentence(muster, 3, "muster run",
                 "round 0 did not come together within 1 s: 1 of 2 nodes are here", 1);
}

}  // namespace
}  // namespace muster::test
