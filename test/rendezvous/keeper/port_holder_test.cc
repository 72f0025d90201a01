// What answers for a dead process, and for how long.
#include "rendezvous/keeper/port_holder.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include "rendezvous/net/listening_socket.h"
#include "test/rendezvous/keeper/caller.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::rendezvous {
namespace {

constexpr char kSession[] = "0123456789abcdef";

// A listening process with its port holder.
class Host {
 public:
  explicit Host(const ProbeKey& key) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Serve(key, ends[1]);
    }
    close(ends[1]);
    if (read(ends[0], &told_, sizeof told_) != sizeof told_) std::abort();
    // Held only by the host, and not by its port holder.
    pipe_ = ends[0];
  }
  ~Host() {
    Kill();
    kill(told_.port_holder, SIGKILL);
    close(pipe_);
  }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  std::uint16_t port() const { return told_.port; }
  pid_t port_holder() const { return told_.port_holder; }
  // Whether every process that has the host's descriptors has closed them.
  bool PipeEnded() const {
    char ignored;
    return read(pipe_, &ignored, 1) == 0;
  }

 private:
  struct Told {
    std::uint16_t port = 0;
    pid_t port_holder = 0;
  };

  [[noreturn]] static void Serve(const ProbeKey& key, int out) {
    boost::asio::io_context io;
    auto sockets = ListenAt(io, {"127.0.0.1", 0});
    std::vector<int> fds;
    for (auto& socket : *sockets) fds.push_back(socket.native_handle());
    const auto port_holder = PortHolder::Start(fds, key);
    const Told told{PortOf(*sockets), port_holder->pid()};
    if (write(out, &told, sizeof told) != sizeof told) std::abort();
    for (;;) pause();
  }

  pid_t pid_ = -1;
  int pipe_ = -1;
  Told told_;
};

class PortHolderTest : public testing::Test {
 protected:
  std::optional<ProbeWord> Probe(std::uint16_t port) const {
    const ProbeNonce nonce = MakeProbeNonce();
    const Caller caller(port);
    caller.Say(FormatProbe(kSession, nonce));
    return VerifyProbeAnswer(SecretFor(key_, kSession), nonce, caller.HearAll().value_or(""));
  }

  const ProbeKey key_ = MakeKnockKey();
};

// "The node that hosted the rendezvous died, and all others' workers were killed within 1.7 s,
// though they had 30 s of grace."
TEST_F(PortHolderTest, KilledHostIsReportedGone) {
  Host host(key_);
  {
    const Caller while_it_lives(host.port());
    while_it_lives.Say(FormatProbe(kSession, MakeProbeNonce()));
    EXPECT_TRUE(while_it_lives.HearsNothing()) << "the host of this test accepts nobody";
  }
  host.Kill();
  EXPECT_EQ(Probe(host.port()), ProbeWord::kGone);
  EXPECT_EQ(Probe(host.port()), ProbeWord::kGone);
}

TEST_F(PortHolderTest, ItHoldsNothingOfItsHostsButThePort) {
  Host host(key_);
  host.Kill();
  EXPECT_TRUE(host.PipeEnded());
}

TEST_F(PortHolderTest, ItLeavesAfterItsTime) {
  Host host(key_);
  host.Kill();
  EXPECT_TRUE(test::IsAlive(host.port_holder()));
  EXPECT_TRUE(test::WaitUntil([&] { return !test::IsAlive(host.port_holder()); },
                              PortHolder::kStay + std::chrono::seconds(5)));
  EXPECT_FALSE(Connects(host.port()));
}

TEST_F(PortHolderTest, NextServerGetsThePortAtOnce) {
  Host host(key_);
  host.Kill();
  boost::asio::io_context io;
  EXPECT_TRUE(ListenAt(io, {"127.0.0.1", host.port()}).ok());
}

TEST_F(PortHolderTest, LivingHostIsNotAskedForRoomInVain) {
  Host host(key_);
  boost::asio::io_context io;
  const auto second = ListenAt(io, {"127.0.0.1", host.port()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Connects(host.port()));
}

TEST_F(PortHolderTest, DismissedItHasLetGoOfThePort) {
  boost::asio::io_context io;
  auto sockets = ListenAt(io, {"127.0.0.1", 0});
  ASSERT_TRUE(sockets.ok());
  const std::uint16_t port = PortOf(*sockets);
  {
    const auto port_holder =
        PortHolder::Start(std::vector<int>{sockets->front().native_handle()}, key_);
    ASSERT_TRUE(port_holder.ok());
    EXPECT_EQ(test::ChildrenOf(getpid()), std::vector<pid_t>{port_holder->pid()});
    // A signal to the whole session or group does not end it.
    kill(port_holder->pid(), SIGTERM);
    kill(port_holder->pid(), SIGHUP);
    sockets->clear();
    EXPECT_TRUE(Connects(port));
  }
  EXPECT_TRUE(test::ChildrenOf(getpid()).empty());
  EXPECT_FALSE(Connects(port));
}

// Kernels before 5.9, and some filters, have no close_range.
TEST_F(PortHolderTest, DescriptorsAreClosedWithoutCloseRangeToo) {
  for (const auto close_but : {CloseAllBut, CloseListedBut}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      // More than one read of the directory returns.
      for (int i = 0; i < 400; ++i) dup(ends[0]);
      const int kept = fcntl(ends[1], F_DUPFD, 300);
      close_but(std::vector<int>{ends[0], kept});
      int open = 0;
      for (int fd = 0; fd < 1000; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
      _exit(open == 2 && fcntl(kept, F_GETFD) >= 0 && fcntl(ends[0], F_GETFD) >= 0 ? 0 : open);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    close(ends[0]);
    close(ends[1]);
  }
}

}  // namespace
}  // namespace muster::rendezvous
