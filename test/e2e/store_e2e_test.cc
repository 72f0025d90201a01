// `muster store` with PyTorch's own client, and asked by another user of the machine.
#include <csignal>
#include <optional>
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
  // Returns once clients can connect.
  Command Serve(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> argv =
        Joined({MusterPath(), "store", "--port=0", "--ready-fd=1"}, flags);
    Command store(std::move(argv), {mark()});
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

// "Another user of the machine read what our workers had stored": every user of it could.
TEST_F(StoreTest, AnotherUserOfTheMachineIsLetInOnlyIfThatIsAskedFor) {
  // Pings the store as another user, and prints how many bytes come back.
  constexpr char kOther[] = R"(
import os, socket, struct, sys
try:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
except OSError:
    sys.exit(77)
store = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
try:
    store.sendall(bytes([0]) + struct.pack("<I", 0x3C85F7CE) + bytes([13]) + struct.pack("<I", 7))
    print(len(store.recv(4)))
except ConnectionError:
    print(0)
)";
  for (const bool all : {false, true}) {
    Command store = all ? Serve({"--all-users"}) : Serve();
    Command other({"/usr/bin/python3", "-c", kOther, PortOf(store)}, {mark()});
    const std::optional<int> code = other.Wait(kPythonDeadline);
    if (code == 77) GTEST_SKIP() << "only root can become another user, and not in a sandbox";
    EXPECT_EQ(code, 0) << other.err();
    EXPECT_EQ(other.out(), all ? "4\n" : "0\n");
    store.Signal(SIGTERM);
    EXPECT_EQ(store.Wait(), 0);
    EXPECT_EQ(Contains(store.err(), "refused a process of another user"), !all);
    EXPECT_EQ(Contains(store.err(), "--all-users allows"), !all);
  }
}

}  // namespace
}  // namespace muster::test
