#include "rendezvous/fronts/subscriptions.h"

#include <chrono>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

struct Watchers : ChangeFeed::Publisher {
  void Publish(const ChangeFeed::News& news) override { ++(news.empty() ? to_all : to_some); }
  bool is_watched() const override { return true; }

  int to_some = 0;
  int to_all = 0;
};

// While one tenant's job kept restarting, another tenant's `muster top` and page got no updates,
// and looked as if the daemon were dead.
TEST(ChangeFeedTest, WhoHasNoNewsIsToldThatHoweverOftenOthersHave) {
  boost::asio::io_context io;
  ChangeFeed feed(io);
  Watchers watchers;
  feed.Add(watchers);
  feed.Begin();
  boost::asio::steady_timer restarts(io);
  const auto restart = [&](const auto& again) -> void {
    feed.Changed("alice", {.run_id = "job"});
    restarts.expires_after(std::chrono::milliseconds(100));
    restarts.async_wait([&, again](boost::system::error_code error) {
      if (!error) again(again);
    });
  };
  restart(restart);
  EXPECT_TRUE(test::RunUntil(io, [&] { return watchers.to_all > 0; }));
  EXPECT_GT(watchers.to_some, 0);
  restarts.cancel();
  feed.Remove(watchers);
}

TEST(ChangeFeedTest, HowOftenStepsAreToldFollowsFromHowLongThatIs) {
  using std::chrono::milliseconds;
  EXPECT_EQ(ChangeFeed::PauseAfter(false, 0), ChangeFeed::kAtLeast);
  EXPECT_EQ(ChangeFeed::PauseAfter(true, 1000), milliseconds(1000));
  EXPECT_EQ(ChangeFeed::PauseAfter(true, 256 << 10), milliseconds(4000));
  EXPECT_EQ(ChangeFeed::PauseAfter(true, 64 << 20), ChangeFeed::kAtLeast);
}

}  // namespace
}  // namespace muster::rendezvous
