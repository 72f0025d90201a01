#include "launcher/doctor/bounded_look.h"

#include <unistd.h>

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::chrono::seconds kLong(60);

TEST(BoundedLookTest, WhatTheChildSaysIsHeard) {
  const ProbeOutput output = LookWithin(kLong, [](const Say& say) {
    say("one");
    say("");
    say("two\nlines");
  });
  EXPECT_TRUE(output.is_whole);
  EXPECT_THAT(output.said, ElementsAre("one", "", "two\nlines"));
}

TEST(BoundedLookTest, MoreThanAPipeHoldsIsHeard) {
  const std::string much(1 << 20, 'x');
  const ProbeOutput output = LookWithin(kLong, [&much](const Say& say) { say(much); });
  EXPECT_TRUE(output.is_whole);
  ASSERT_THAT(output.said, SizeIs(1));
  EXPECT_EQ(output.said[0], much);
}

TEST(BoundedLookTest, AChildThatIsNotDoneInTimeIsLeft) {
  const ProbeOutput output = LookWithin(std::chrono::milliseconds(200), [](const Say& say) {
    say("begun");
    ::pause();
    say("done");
  });
  EXPECT_FALSE(output.is_whole);
  EXPECT_TRUE(output.is_late);
  EXPECT_THAT(output.said, ElementsAre("begun"));
}

TEST(BoundedLookTest, AChildThatDiesHasNotSeenAll) {
  const ProbeOutput output = LookWithin(kLong, [](const Say& say) {
    say("begun");
    ::raise(SIGKILL);
  });
  EXPECT_FALSE(output.is_whole || output.is_late);
  EXPECT_THAT(output.said, ElementsAre("begun"));
}

}  // namespace
}  // namespace muster::launcher
