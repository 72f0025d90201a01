// This machine's own names and addresses. Asserts only what holds on every machine: loopback
// addresses, and TEST-NET addresses (RFC 5737), which no machine has.
#include "launcher/machine/network.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <string>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(LocalAddressTest, HostNameIsWhatTheKernelSays) {
  char name[HOST_NAME_MAX + 1] = {};
  ASSERT_EQ(gethostname(name, sizeof name), 0);
  EXPECT_EQ(HostName(), name[0] == '\0' ? "localhost" : name);
}

// Pods with setHostnameAsFQDN have names of up to 64 bytes, Linux' limit: such a machine was called
// "localhost".
TEST(LocalAddressTest, HostNameMayBeAsLongAsTheKernelAllows) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string longest(HOST_NAME_MAX, 'n');
    if (unshare(CLONE_NEWUTS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWUTS) != 0) _exit(2);
    if (sethostname(longest.data(), longest.size()) != 0) _exit(2);
    _exit(HostName() == longest ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this process may not name a machine";
  EXPECT_EQ(status, 0);
}

TEST(LocalAddressTest, LoopbackAddressIsOursAndIsReachedFromLoopback) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const EndpointView view = LookAtEndpoint({host, 29400});
    EXPECT_TRUE(view.resolved) << host;
    EXPECT_TRUE(view.ours) << host;
    EXPECT_TRUE(view.loopback) << host;
    EXPECT_TRUE(view.local_address == "127.0.0.1" || view.local_address == "::1")
        << host << " is reached from " << view.local_address;
  }
}

TEST(LocalAddressTest, LoopbackAddressThatNoInterfaceListsIsOursToo) {
  const EndpointView view = LookAtEndpoint({"127.0.1.1", 29400});
  EXPECT_TRUE(view.ours);
  EXPECT_TRUE(view.loopback);
  EXPECT_TRUE(rendezvous::IsLoopbackLiteral(view.local_address)) << view.local_address;
}

TEST(LocalAddressTest, PortZeroIsLookedAtLikeAnyOther) {
  EXPECT_TRUE(LookAtEndpoint({"127.0.0.1", 0}).ours);
  EXPECT_EQ(LookAtEndpoint({"127.0.0.1", 0}).local_address, "127.0.0.1");
}

TEST(LocalAddressTest, AddressOfAnotherMachineIsNotOurs) {
  const EndpointView view = LookAtEndpoint({"192.0.2.1", 29400});
  EXPECT_TRUE(view.resolved);
  EXPECT_FALSE(view.ours);
  EXPECT_FALSE(view.loopback);
  EXPECT_NE(view.local_address, "192.0.2.1");
}

TEST(LocalAddressTest, AddressFromWhichOthersAreReachedIsOurs) {
  const EndpointView view = LookAtEndpoint({"192.0.2.1", 29400});
  if (view.local_address.empty()) GTEST_SKIP() << "this machine has no route to others";
  EXPECT_TRUE(LookAtEndpoint({view.local_address, 29400}).ours) << view.local_address;
}

TEST(LocalAddressTest, NameThatDoesNotResolveIsKnownForNothingElse) {
  const EndpointView view = LookAtEndpoint({"no-such-host.invalid", 29400});
  EXPECT_FALSE(view.resolved);
  EXPECT_FALSE(view.ours);
  EXPECT_FALSE(view.loopback);
  EXPECT_EQ(view.local_address, "");
}

}  // namespace
}  // namespace muster::launcher
