// `muster store` as a user starts it, with PyTorch's own client.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// A Python that imports torch, on a machine that may have one slow core.
constexpr std::chrono::seconds kPythonDeadline(240);

class StoreTest : public E2eTest {
 protected:
  Command Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {MusterPath(), "store"});
    return Command(std::move(arguments), {mark()});
  }
  // Returns once clients can connect.
  Command Serve(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"--port=0", "--ready-fd=1"});
    Command store = Start(std::move(arguments));
    EXPECT_TRUE(store.WaitForOut("\n")) << store.err();
    return store;
  }
  static std::string PortOf(const Command& store) { return Lines(store.out()).at(0); }
};

TEST_F(StoreTest, PyTorchsOwnClientFindsWhatItExpects) {
  if (Command({"/usr/bin/python3", "-c", "import torch.distributed"}).Wait(kPythonDeadline) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch (Debian: python3-torch)";
  }
  Command store = Serve();
  Command client({"/usr/bin/python3", "test/e2e/store_client.py", PortOf(store)}, {mark()});
  EXPECT_EQ(client.Wait(kPythonDeadline), 0) << client.err();
  EXPECT_EQ(client.out(), "ok\n");
  store.Signal(SIGTERM);
  EXPECT_EQ(store.Wait(), 0) << store.err();
  EXPECT_EQ(store.err(), "serving a TCPStore on 127.0.0.1:" + PortOf(store) + "\n");
}

TEST_F(StoreTest, BothSignalsEndIt) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Command store = Serve();
    store.Signal(signal);
    EXPECT_EQ(store.Wait(), 0) << store.err();
  }
}

TEST_F(StoreTest, PortThatIsTakenIsSaidToBe) {
  Command store = Serve();
  const std::string port = PortOf(store);
  Command second = Start({"--port=" + port});
  EXPECT_EQ(second.Wait(), 4);
  EXPECT_TRUE(Contains(second.err(), "127.0.0.1:" + port));
  EXPECT_TRUE(Contains(second.err(), "choose another port"));
}

TEST_F(StoreTest, MistakesAreSaidInOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{}, "--port is required"},
      {{"--port=many"}, "--port"},
      {{"--port=70000"}, "--port"},
      {{"--port=0", "--allow=somebody"}, "--allow=somebody is not a numeric address"},
      {{"--port=0", "--legacy-dialect=3"}, "--legacy-dialect"},
      {{"--port=0", "--hots=127.0.0.1"}, "--hots"},
      {{"--port=0", "--host="}, "--host"}};
  for (const auto& [arguments, part] : mistakes) {
    Command store = Start(arguments);
    EXPECT_EQ(store.Wait(), 2) << part;
    EXPECT_TRUE(Contains(store.err(), "muster store: "));
    EXPECT_TRUE(Contains(store.err(), part));
    EXPECT_EQ(Lines(store.err()).size(), 1u) << store.err();
    EXPECT_EQ(store.out(), "");
  }
}

TEST_F(StoreTest, HelpNamesEveryOption) {
  Command store = Start({"--help"});
  EXPECT_EQ(store.Wait(), 0);
  for (const char* option : {"--port", "--host", "--allow", "--legacy-dialect", "--ready-fd"}) {
    EXPECT_TRUE(Contains(store.out(), option));
  }
}

TEST_F(StoreTest, StrangersAreCutOff) {
  const std::string ask =
      "import socket, sys\n"
      "peer = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
      "peer.sendall(b'\\6')\n"  // GETNUMKEYS
      "try: print(len(peer.recv(8)))\n"
      "except ConnectionResetError: print(0)\n";
  for (const auto& [allowed, reply] :
       {std::pair("192.0.2.1,192.0.2.2", "0\n"), std::pair("192.0.2.1,127.0.0.1", "8\n")}) {
    Command store = Serve({std::string("--allow=") + allowed});
    Command client({"/usr/bin/python3", "-c", ask, PortOf(store)}, {mark()});
    EXPECT_EQ(client.Wait(), 0) << client.err();
    EXPECT_EQ(client.out(), reply);
  }
}

}  // namespace
}  // namespace muster::test
