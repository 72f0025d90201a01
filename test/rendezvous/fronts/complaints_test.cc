#include "rendezvous/fronts/complaints.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr Complaints::TimePoint kStart{seconds(1000)};

class ComplaintsTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  Complaints complaints_{[this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(ComplaintsTest, OneLineForEachAddressAndMinuteAndTheRestIsCounted) {
  for (int i = 0; i < 100; ++i) complaints_.Add("10.0.0.1", "may not", kStart);
  complaints_.Add("10.0.0.2", "may not", kStart);
  complaints_.Add("10.0.0.1", "may not", kStart + seconds(59));
  complaints_.Add("10.0.0.1", "may not", kStart + seconds(60));
  complaints_.Add("10.0.0.1", "may not", kStart + seconds(120));
  EXPECT_THAT(lines_, ElementsAre("10.0.0.1 may not", "10.0.0.2 may not",
                                  "10.0.0.1 may not; 100 more refusals since its last line",
                                  "10.0.0.1 may not"));
  EXPECT_EQ(complaints_.total(), 104u);
}

// A flood from made-up addresses wrote a line for each, and remembered all of them.
TEST_F(ComplaintsTest, ManyAddressesShareALine) {
  for (int i = 0; i < 100'000; ++i) complaints_.Add("a" + std::to_string(i), "may not", kStart);
  EXPECT_EQ(lines_.size(), 1025u);
  EXPECT_EQ(lines_.back(), "many addresses may not");
  EXPECT_EQ(complaints_.total(), 100'000u);
  // Those of a minute ago are forgotten.
  complaints_.Add("b", "may not", kStart + seconds(60));
  EXPECT_EQ(lines_.back(), "b may not");
}

}  // namespace
}  // namespace muster::rendezvous
