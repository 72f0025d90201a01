// How long handlers hold the loop, told apart from how long it waits for them.
#include "rendezvous/server/daemon_pages.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "third_party/system/asio_wait.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

std::uint64_t NotLongerThan(const LoopTurns& turns, std::chrono::nanoseconds bound) {
  const auto bounds = turns.turns().bounds();
  const auto found = std::find(bounds.begin(), bounds.end(), bound);
  EXPECT_NE(found, bounds.end());
  return turns.turns().UpTo(static_cast<std::size_t>(found - bounds.begin()));
}

TEST(LoopTurnsTest, HandlerThatSleepsHasHeldTheLoopForAsLong) {
  boost::asio::io_context io;
  LoopTurns turns;
  boost::asio::steady_timer first(io, milliseconds(5));
  first.async_wait(
      [](boost::system::error_code) { std::this_thread::sleep_for(milliseconds(11)); });
  boost::asio::post(io, [] { std::this_thread::sleep_for(milliseconds(26)); });
  turns.Run(io);
  EXPECT_EQ(turns.turns().count(), 2u);
  EXPECT_EQ(NotLongerThan(turns, milliseconds(10)), 0u);
  EXPECT_GE(turns.turns().sum(), milliseconds(37));
}

// A turn begins when the loop comes back from the kernel, and so not before what it waited for.
TEST(LoopTurnsTest, TimeInWhichTheLoopWaitedIsNobodys) {
  boost::asio::io_context io;
  LoopTurns turns;
  boost::asio::steady_timer timer(io);
  int left = 3;
  const std::function<void()> again = [&] {
    timer.expires_after(milliseconds(40));
    timer.async_wait([&](boost::system::error_code) {
      ASSERT_NE(asio::woke, nullptr);
      // The kernel is asked in whole microseconds.
      EXPECT_GE(*asio::woke, timer.expiry() - milliseconds(1));
      if (--left > 0) again();
    });
  };
  again();
  turns.Run(io);
  EXPECT_EQ(turns.turns().count(), 3u);
  EXPECT_EQ(asio::woke, nullptr) << "nothing is measured any more";
}

TEST(LoopTurnsTest, EachOfManyHandlersThatWereReadyTogetherIsMeasured) {
  boost::asio::io_context io;
  LoopTurns turns;
  for (int i = 0; i < 1000; ++i) boost::asio::post(io, [] {});
  turns.Run(io);
  EXPECT_EQ(turns.turns().count(), 1000u);
}

}  // namespace
}  // namespace muster::rendezvous
