#include "rendezvous/fronts/rpc_router.h"

#include <gtest/gtest.h>

#include <optional>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::make_address;

TEST(CallQuotaTest, AHostHasSoManyAndNoOtherHasFewerForIt) {
  CallQuota places(2);
  auto first = places.Take("", make_address("10.0.0.1"));
  const auto second = places.Take("", make_address("10.0.0.1"));
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(places.Take("", make_address("10.0.0.1")), nullptr);
  EXPECT_NE(places.Take("", make_address("10.0.0.2")), nullptr);
  EXPECT_NE(places.Take("bob", make_address("10.0.0.1")), nullptr) << "another user of that host";
  first.reset();
  EXPECT_NE(places.Take("", make_address("10.0.0.1")), nullptr);
}

TEST(CallQuotaTest, APlaceMayOutliveThem) {
  std::optional<CallQuota> places(1);
  const auto place = places->Take("", make_address("10.0.0.1"));
  places.reset();
}

}  // namespace
}  // namespace muster::rendezvous
