// The environment of the workers, for each way in which nodes can meet.
//
// Every worker runs env(1) and writes to its own file, so that the lines of several workers do not
// mix; the test reads the files by rank.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

using Variables = std::map<std::string, std::string>;

class EnvironmentTest : public E2eTest {
 protected:
  // An agent whose workers write down their environment.
  Command StartEnv(std::vector<std::string> flags, std::vector<std::string> environment = {}) {
    flags.insert(flags.end(), {"-r", "3", "--log-dir", Path("logs"), "--no-python", "env"});
    return StartMuster(std::move(flags), std::move(environment));
  }

  static void ExpectSuccess(Command& agent) {
    EXPECT_EQ(agent.Wait(), 0) << agent.err();
    for (const std::string& line : Lines(agent.err())) {
      // The one note that several workers on a node bring.
      EXPECT_TRUE(Contains(line, "OMP_NUM_THREADS"));
    }
  }

  // What the workers of all agents wrote, by rank.
  std::map<std::string, Variables> ReadWorkers() const {
    std::map<std::string, Variables> workers;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Path("logs"))) {
      if (entry.path().filename() != "stdout.log") continue;
      Variables variables;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        const std::size_t equals = line.find('=');
        if (equals != std::string::npos) {
          variables[line.substr(0, equals)] = line.substr(equals + 1);
        }
      }
      EXPECT_FALSE(workers.contains(variables["RANK"])) << "two workers have one rank";
      workers[variables["RANK"]] = variables;
    }
    return workers;
  }

  // "RANK LOCAL_RANK GROUP_RANK LOCAL_WORLD_SIZE" of each worker, in order of rank. Checks what
  // must be the same for all: the world, and where its store is.
  static std::vector<std::string> Layout(std::map<std::string, Variables> workers) {
    std::vector<std::string> layout;
    std::set<std::string> common;
    for (auto& [rank, variables] : workers) {
      layout.push_back(rank + " " + variables["LOCAL_RANK"] + " " + variables["GROUP_RANK"] + " " +
                       variables["LOCAL_WORLD_SIZE"]);
      EXPECT_EQ(variables["WORLD_SIZE"], std::to_string(workers.size()));
      EXPECT_EQ(variables["ROLE_RANK"], rank);
      common.insert(variables["MASTER_ADDR"] + ":" + variables["MASTER_PORT"] + " " +
                    variables["GROUP_WORLD_SIZE"] + " " + variables["TORCHELASTIC_RUN_ID"]);
    }
    EXPECT_EQ(common.size(), 1u) << "not the same for all: " << testing::PrintToString(common);
    return layout;
  }

  const std::vector<std::string> kTwoByTwo = {"0 0 0 2", "1 1 0 2", "2 0 1 2", "3 1 1 2"};
};

// "Our data loader uses select(), and aborts since the agent raises its limit": workers have what
// the user has.
TEST_F(EnvironmentTest, AgentThatHostsRaisesItsOwnLimitOfDescriptorsAndNotItsWorkers) {
  const HeldPort port;
  Command agent(
      {"sh", "-c", "ulimit -Sn 300; ulimit -Hn 600; exec \"$@\"", "sh", MusterPath(), "run",
       "--nnodes=1", "--rdzv-endpoint=" + port.endpoint(), "--no-python", "sh", "-c",
       "echo worker $(ulimit -Sn) $(ulimit -Hn); "
       "echo agent $(grep 'open files' /proc/$PPID/limits)"},
      Environment());
  EXPECT_EQ(agent.Wait(), 0);
  EXPECT_TRUE(Contains(agent.out(), "worker 300 600\n"));
  EXPECT_TRUE(Contains(agent.out(), "agent Max open files 600 600 "));
}

TEST_F(EnvironmentTest, StandaloneWorkersGetAllOfTorchrunsVariables) {
  Command agent =
      StartEnv({"--nproc-per-node=4", "--rdzv-id=job7", "--max-restarts=2", "--role=trainer"},
               {"CUDA_VISIBLE_DEVICES=4,5"});
  ExpectSuccess(agent);

  std::map<std::string, Variables> workers = ReadWorkers();
  ASSERT_EQ(workers.size(), 4u);
  const std::string port = workers["0"]["MASTER_PORT"];
  EXPECT_GT(std::atoi(port.c_str()), 0);
  for (auto& [rank, variables] : workers) {
    SCOPED_TRACE("rank " + rank);
    const Variables expected = {{"RANK", rank},
                                {"LOCAL_RANK", rank},
                                {"GROUP_RANK", "0"},
                                {"GROUP_WORLD_SIZE", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"WORLD_SIZE", "4"},
                                {"ROLE_NAME", "trainer"},
                                {"ROLE_RANK", rank},
                                {"ROLE_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", port},
                                {"TORCHELASTIC_RESTART_COUNT", "0"},
                                {"TORCHELASTIC_MAX_RESTARTS", "2"},
                                {"TORCHELASTIC_RUN_ID", "job7"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                                {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                {"CUDA_VISIBLE_DEVICES", "4,5"}};
    for (const auto& [name, value] : expected) EXPECT_EQ(variables[name], value) << name;
    const std::string error_file = variables["TORCHELASTIC_ERROR_FILE"];
    EXPECT_TRUE(error_file.starts_with(Path("logs") + "/job7_")) << error_file;
    EXPECT_TRUE(error_file.ends_with("/attempt_0/" + rank + "/error.json")) << error_file;
    EXPECT_FALSE(variables.contains("NODE_RANK"));
  }
}

TEST_F(EnvironmentTest, ThreadsOfOpenMpAreTheUsersOrOneWhenWorkersShareANode) {
  Command chosen = StartEnv({"--standalone", "--nproc-per-node=2"}, {"OMP_NUM_THREADS=5"});
  ExpectSuccess(chosen);
  for (auto& [rank, variables] : ReadWorkers()) EXPECT_EQ(variables["OMP_NUM_THREADS"], "5");
  std::filesystem::remove_all(Path("logs"));

  Command open = StartEnv({"--standalone", "--nproc-per-node=2"});
  ExpectSuccess(open);
  for (auto& [rank, variables] : ReadWorkers()) EXPECT_EQ(variables["OMP_NUM_THREADS"], "1");
}

TEST_F(EnvironmentTest, TwoAgentsMeetAtADaemon) {
  const Daemon daemon = StartDaemon();
  const std::vector<std::string> flags = {"--nnodes=2", "--nproc-per-node=2", "--rdzv-id=job",
                                          "--rdzv-endpoint=" + daemon.endpoint};
  Command one = StartEnv(flags);
  Command other = StartEnv(flags);
  ExpectSuccess(one);
  ExpectSuccess(other);
  std::map<std::string, Variables> workers = ReadWorkers();
  EXPECT_EQ(Layout(workers), kTwoByTwo);
  // What the agent tells its own gRPC (grpc_runtime.cc) is none of a worker's business.
  EXPECT_FALSE(workers["0"].contains("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS"));
}

TEST_F(EnvironmentTest, TwoAgentsMeetAtTheOneThatOwnsTheEndpoint) {
  const HeldPort port;
  const std::vector<std::string> flags = {"--nnodes=2", "--nproc-per-node=2",
                                          "--rdzv-endpoint=" + port.endpoint()};
  Command one = StartEnv(flags);
  Command other = StartEnv(flags);
  ExpectSuccess(one);
  ExpectSuccess(other);
  EXPECT_EQ(Layout(ReadWorkers()), kTwoByTwo);
}

// "listen on 127.0.0.1:51927: gRPC could not start its server": both agents of a machine found the
// port free, and the slower of the two gave up.
TEST_F(EnvironmentTest, ManyAgentsThatStartAtOnceAgreeOnOneHost) {
  const HeldPort port;
  std::vector<Command> agents;
  for (int i = 0; i < 6; ++i) {
    agents.push_back(StartEnv({"--nnodes=6", "--rdzv-endpoint=" + port.endpoint()}));
  }
  for (Command& agent : agents) ExpectSuccess(agent);
  EXPECT_EQ(Layout(ReadWorkers()).size(), 6u);
}

TEST_F(EnvironmentTest, NodeRankDecidesWhoIsFirst) {
  const Daemon daemon = StartDaemon();
  const std::string endpoint = "--rdzv-endpoint=" + daemon.endpoint;
  Command last =
      StartEnv({"--nnodes=2", "--rdzv-id=job", endpoint, "--node-rank=1"}, {"NODE=last"});
  Command first =
      StartEnv({"--nnodes=2", "--rdzv-id=job", endpoint, "--node-rank=0"}, {"NODE=first"});
  ExpectSuccess(last);
  ExpectSuccess(first);
  std::map<std::string, Variables> workers = ReadWorkers();
  EXPECT_EQ(workers["0"]["NODE"], "first");
  EXPECT_EQ(workers["1"]["NODE"], "last");
}

TEST_F(EnvironmentTest, NodesOfOneRackGetNeighbouringRanks) {
  const Daemon daemon = StartDaemon();
  std::vector<Command> agents;
  for (const std::string place : {"rack-10/b", "rack-2/b", "rack-10/a", "rack-2/a"}) {
    agents.push_back(StartEnv({"--nnodes=4", "--rdzv-id=job", "--rdzv-endpoint=" + daemon.endpoint,
                               "--topology=" + place},
                              {"PLACE=" + place}));
  }
  for (Command& agent : agents) ExpectSuccess(agent);
  std::map<std::string, Variables> workers = ReadWorkers();
  EXPECT_EQ(workers["0"]["PLACE"], "rack-2/a");
  EXPECT_EQ(workers["1"]["PLACE"], "rack-2/b");
  EXPECT_EQ(workers["2"]["PLACE"], "rack-10/a");
  EXPECT_EQ(workers["3"]["PLACE"], "rack-10/b");
}

TEST_F(EnvironmentTest, NodesMayHaveDifferentNumbersOfWorkers) {
  const Daemon daemon = StartDaemon();
  const std::string endpoint = "--rdzv-endpoint=" + daemon.endpoint;
  Command one =
      StartEnv({"--nnodes=2", "--rdzv-id=job", endpoint, "--node-rank=0", "--nproc-per-node=1"});
  Command three =
      StartEnv({"--nnodes=2", "--rdzv-id=job", endpoint, "--node-rank=1", "--nproc-per-node=3"});
  ExpectSuccess(one);
  ExpectSuccess(three);
  const std::vector<std::string> expected = {"0 0 0 1", "1 0 1 3", "2 1 1 3", "3 2 1 3"};
  EXPECT_EQ(Layout(ReadWorkers()), expected);
}

TEST_F(EnvironmentTest, StaticNodesMeetAtTheMasterAddress) {
  const HeldPort port;
  const auto start = [&](const std::string& rank) {
    return StartEnv({"--nnodes=2", "--nproc-per-node=2", "--node-rank=" + rank,
                     "--master-addr=127.0.0.1", "--master-port=" + port.number()});
  };
  Command last = start("1");
  Command first = start("0");
  EXPECT_EQ(last.Wait(), 0) << last.err();  // it may say that it waits for the first
  ExpectSuccess(first);
  EXPECT_EQ(Layout(ReadWorkers()), kTwoByTwo);
  EXPECT_EQ(ReadWorkers()["3"]["MASTER_ADDR"], "127.0.0.1");
}

TEST_F(EnvironmentTest, MasterPortOfASingleNodeIsTheOneAskedFor) {
  HeldPort port;
  Command agent = StartEnv({"--master-port=" + port.number()});
  ExpectSuccess(agent);
  EXPECT_EQ(ReadWorkers()["0"]["MASTER_PORT"], port.number());
}

}  // namespace
}  // namespace muster::test
