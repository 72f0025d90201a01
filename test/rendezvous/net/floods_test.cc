// A host that only opens connections is blocked; its neighbours, and hosts that were admitted
// before, are not.
#include "rendezvous/net/flood_guard.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FloodsTest : public testing::Test {
 protected:
  static Floods::Host Host(int number) {
    return boost::asio::ip::address_v4(0x0a000000u + static_cast<unsigned>(number));
  }
  // This many of one host at once. Returns how many of them blocked it.
  int Fail(const Floods::Host& host, int count) {
    int barred = 0;
    for (int i = 0; i < count; ++i) barred += floods_.Failed(host, now_) ? 1 : 0;
    return barred;
  }
  void After(Duration time) { now_ += time; }

  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  Floods floods_{{.in_a_second = 10, .at_once = 20, .rest = seconds(1), .barred = 3}};
};

TEST_F(FloodsTest, AHostThatHasHadItsShareIsBarredForAWhile) {
  EXPECT_EQ(Fail(Host(1), 19), 0);
  EXPECT_FALSE(floods_.next_release().has_value());
  EXPECT_EQ(Fail(Host(1), 20), 1);
  EXPECT_EQ(floods_.barred().size(), 1u);
  ASSERT_EQ(floods_.next_release(), now_ + seconds(1));
  After(milliseconds(999));
  EXPECT_FALSE(floods_.Release(now_));
  After(milliseconds(1));
  EXPECT_TRUE(floods_.Release(now_));
  EXPECT_TRUE(floods_.barred().empty());
}

TEST_F(FloodsTest, AfterwardsItHasNoMoreThanItMayHaveInASecond) {
  Fail(Host(1), 21);
  int connections = 0;
  for (int second = 0; second < 100; ++second) {
    After(seconds(1));
    floods_.Release(now_);
    for (; !floods_.barred().contains(Host(1)); ++connections) Fail(Host(1), 1);
  }
  EXPECT_NEAR(connections, 100 * 10, 10);
}

TEST_F(FloodsTest, WhoStopsMayHaveAsManyAtOnceAgain) {
  Fail(Host(1), 21);
  After(seconds(4));
  floods_.Release(now_);
  EXPECT_EQ(Fail(Host(1), 19), 0);
}

TEST_F(FloodsTest, OtherHostsAreNotBarred) {
  EXPECT_EQ(Fail(Host(1), 21), 1);
  EXPECT_EQ(Fail(Host(2), 19), 0);
  EXPECT_FALSE(floods_.barred().contains(Host(2)));
}

TEST_F(FloodsTest, AHostThatIsKnownIsNotBarred) {
  EXPECT_FALSE(floods_.Known(Host(1)));
  EXPECT_EQ(Fail(Host(1), 1000), 0);
}

TEST_F(FloodsTest, AHostThatBecomesKnownIsLetInAtOnce) {
  Fail(Host(1), 21);
  EXPECT_TRUE(floods_.Known(Host(1)));
  EXPECT_TRUE(floods_.barred().empty());
  EXPECT_FALSE(floods_.Known(Host(1)));
}

TEST_F(FloodsTest, NoMoreHostsAreBarredThanTheKernelComparesEasily) {
  for (int host = 0; host < 5; ++host) Fail(Host(host), 21);
  EXPECT_EQ(floods_.barred().size(), 3u);
}

// A flood from many addresses must not take the memory that one from a few cannot.
TEST_F(FloodsTest, HostsWithoutNumberAreForgotten) {
  for (int host = 0; host < 100'000; ++host) Fail(Host(host), 1);
  EXPECT_EQ(Fail(Host(200'000), 21), 1);
  for (int host = 0; host < 100'000; ++host) floods_.Known(Host(host));
  EXPECT_EQ(Fail(Host(0), 21), 1) << "who was known first is forgotten first";
  EXPECT_EQ(Fail(Host(99'999), 1000), 0);
}

}  // namespace
}  // namespace muster::rendezvous
