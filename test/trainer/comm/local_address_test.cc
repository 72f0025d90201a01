#include "trainer/comm/host/transport.h"

#include <gtest/gtest.h>
#include <netdb.h>

namespace muster::trainer {
namespace {

TEST(LocalAddressTest, LoopbackIsReachedFromLoopback) {
  EXPECT_EQ(LocalAddressTowards("127.0.0.1", 29500).value(), "127.0.0.1");
  // 127/8 is all this machine, and the kernel answers each address from itself.
  EXPECT_EQ(LocalAddressTowards("127.0.0.2", 29500).value(), "127.0.0.1");
}

TEST(LocalAddressTest, ANameIsResolved) {
  // A system without /etc/hosts may not even resolve the one name that needs no network.
  addrinfo* any = nullptr;
  if (getaddrinfo("localhost", nullptr, nullptr, &any) != 0) GTEST_SKIP() << "no localhost here";
  freeaddrinfo(any);
  const absl::StatusOr<std::string> address = LocalAddressTowards("localhost", 29500);
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_TRUE(*address == "127.0.0.1" || *address == "::1") << *address;
}

TEST(LocalAddressTest, AnUnknownNameIsAnError) {
  // The top-level domain "invalid" never exists (RFC 2606).
  const absl::Status status = LocalAddressTowards("rank-0.invalid", 29500).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message().substr(0, 24), "resolve rank-0.invalid: ");
}

TEST(LocalAddressTest, AnAddressHasAnInterface) {
  EXPECT_EQ(InterfaceOf("127.0.0.1"), "lo");
  // 192.0.2.0/24 is for documentation (RFC 5737).
  EXPECT_EQ(InterfaceOf("192.0.2.1"), "");
}

}  // namespace
}  // namespace muster::trainer
