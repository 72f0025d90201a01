// A daemon that keeps its jobs in an etcd.
#include <sched.h>
#include <signal.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "test/support/command.h"
#include "test/support/process_scan.h"

namespace muster {
namespace {

using test::Command;

// `systemctl stop` and a terminal's Ctrl-C signal the keeper and the daemon, and the keeper signals
// the daemon again: "the daemon was killed by SIGTERM while stopping", and code 143.
TEST(HaDaemonTest, DaemonThatIsToldSeveralTimesEndsInGoodOrder) {
  // Bound, and nobody listens there.
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  tcp::acceptor port(io);
  port.open(tcp::v4());
  port.set_option(tcp::acceptor::reuse_address(true));
  port.bind({boost::asio::ip::address_v4::loopback(), 0});
  const std::string listen = "--listen=127.0.0.1:" + std::to_string(port.local_endpoint().port());
  for (int i = 0; i < 5; ++i) {
    // Nobody is there to lead at.
    Command keeper({"rendezvous/musterd", listen, "--insecure", "--state=etcd://127.0.0.1:1/jobs"});
    ASSERT_TRUE(keeper.WaitForErr("no member of etcd answers")) << keeper.err();
    const std::vector<pid_t> daemons = test::ChildrenOf(keeper.pid());
    ASSERT_EQ(daemons.size(), 1u);
    keeper.Signal(SIGTERM);
    // Again and again, until there is nobody any more to be told.
    while (::kill(daemons.front(), SIGTERM) == 0) sched_yield();
    ASSERT_EQ(keeper.Wait(), 0) << keeper.err();
  }
}

}  // namespace
}  // namespace muster
