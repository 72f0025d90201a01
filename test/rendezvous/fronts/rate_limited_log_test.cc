#include "rendezvous/fronts/permissions.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr RateLimitedLog::TimePoint kStart{seconds(1000)};

class RateLimitedLogTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  RateLimitedLog rate_limited_log_{[this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(RateLimitedLogTest, OneLineForEachAddressAndMinuteAndTheRestIsCounted) {
  for (int i = 0; i < 100; ++i) rate_limited_log_.Add("10.0.0.1", "may not", kStart);
  rate_limited_log_.Add("10.0.0.2", "may not", kStart);
  rate_limited_log_.Add("10.0.0.1", "may not", kStart + seconds(59));
  rate_limited_log_.Add("10.0.0.1", "may not", kStart + seconds(60));
  rate_limited_log_.Add("10.0.0.1", "may not", kStart + seconds(120));
  EXPECT_THAT(lines_, ElementsAre("10.0.0.1 may not", "10.0.0.2 may not",
                                  "10.0.0.1 may not; 100 more refusals since its last line",
                                  "10.0.0.1 may not"));
  EXPECT_EQ(rate_limited_log_.total(), 104u);
}

// A flood from forged addresses wrote a line for each, and remembered all of them.
TEST_F(RateLimitedLogTest, ManyAddressesShareALine) {
  for (int i = 0; i < 100'000; ++i)
    rate_limited_log_.Add("a" + std::to_string(i), "may not", kStart);
  EXPECT_EQ(lines_.size(), 1025u);
  EXPECT_EQ(lines_.back(), "many addresses may not");
  EXPECT_EQ(rate_limited_log_.total(), 100'000u);
  // Those of a minute ago are forgotten.
  rate_limited_log_.Add("b", "may not", kStart + seconds(60));
  EXPECT_EQ(lines_.back(), "b may not");
}

}  // namespace
}  // namespace muster::rendezvous
