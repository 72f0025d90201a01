// A server without a journal is killed: what its agents can still find out, with what it sent them
// before.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/server/server.h"
#include "test/rendezvous/keeper/caller.h"
#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::rendezvous {
namespace {

constexpr char kSession[] = "0123456789abcdef";

struct Told {
  std::uint16_t port = 0;
  char secret[32] = {};
  pid_t port_holder = 0;
};

// Runs in a separate process, forked before this one has a thread.
[[noreturn]] void ServeForever(int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  boost::asio::io_context io;
  Server server(io);
  if (!server.Listen({"127.0.0.1", 0}, Credentials::Plaintext()).ok()) std::abort();
  Told told{.port = server.port(), .port_holder = test::ChildrenOf(getpid()).at(0)};
  const ProbeSecret secret = server.knock_secret(kSession);
  secret.copy(told.secret, sizeof told.secret);
  if (write(out, &told, sizeof told) != sizeof told) std::abort();
  io.run();
  std::abort();
}

TEST(ServerDeathTest, KilledServerIsGoneByTheSecretThatItHadTold) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) ServeForever(ends[1]);
  Told told;
  ASSERT_EQ(read(ends[0], &told, sizeof told), static_cast<ssize_t>(sizeof told));

  const ProbeNonce nonce = MakeProbeNonce();
  const auto probe = [&]() -> std::string {
    const Caller caller(told.port);
    caller.Say(FormatProbe(kSession, nonce));
    return caller.HearAll().value_or("nothing");
  };
  EXPECT_EQ(probe(), "") << "it lives";
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(VerifyProbeAnswer(ProbeSecret(told.secret, sizeof told.secret), nonce, probe()),
            ProbeWord::kGone);
  // The next server gets the port, and nothing of the first is left.
  boost::asio::io_context io;
  Server next(io);
  EXPECT_TRUE(next.Listen({"127.0.0.1", told.port}, Credentials::Plaintext()).ok());
  EXPECT_TRUE(test::WaitUntil([&] { return !test::IsAlive(told.port_holder); }));
}

TEST(ServerDeathTest, ServerThatStopsInGoodOrderLeavesNobodyBehind) {
  boost::asio::io_context io;
  Server server(io);
  EXPECT_EQ(server.knock_secret(kSession), "") << "nobody would answer";
  EXPECT_TRUE(test::ChildrenOf(getpid()).empty());
  ASSERT_TRUE(server.Listen({"127.0.0.1", 0}, Credentials::Plaintext()).ok());
  const std::uint16_t port = server.port();
  EXPECT_EQ(test::ChildrenOf(getpid()).size(), 1u);
  EXPECT_EQ(server.knock_secret(kSession).size(), 32u);
  EXPECT_EQ(server.knock_secret(""), "");
  bool stopped = false;
  server.Stop([&] { stopped = true; });
  ASSERT_TRUE(test::RunUntil(io, [&] { return stopped; }));
  EXPECT_TRUE(test::ChildrenOf(getpid()).empty());
  EXPECT_FALSE(Connects(port));
}

}  // namespace
}  // namespace muster::rendezvous
