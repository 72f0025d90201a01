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
  const Sight sight = LookWithin(kLong, [](const Say& say) {
    say("one");
    say("");
    say("two\nlines");
  });
  EXPECT_TRUE(sight.is_whole);
  EXPECT_THAT(sight.said, ElementsAre("one", "", "two\nlines"));
}

TEST(BoundedLookTest, MoreThanAPipeHoldsIsHeard) {
  const std::string much(1 << 20, 'x');
  const Sight sight = LookWithin(kLong, [&much](const Say& say) { say(much); });
  EXPECT_TRUE(sight.is_whole);
  ASSERT_THAT(sight.said, SizeIs(1));
  EXPECT_EQ(sight.said[0], much);
}

TEST(BoundedLookTest, AChildThatIsNotDoneInTimeIsLeft) {
  const Sight sight = LookWithin(std::chrono::milliseconds(200), [](const Say& say) {
    say("begun");
    ::pause();
    say("done");
  });
  EXPECT_FALSE(sight.is_whole);
  EXPECT_TRUE(sight.is_late);
  EXPECT_THAT(sight.said, ElementsAre("begun"));
}

TEST(BoundedLookTest, AChildThatDiesHasNotSeenAll) {
  const Sight sight = LookWithin(kLong, [](const Say& say) {
    say("begun");
    ::raise(SIGKILL);
  });
  EXPECT_FALSE(sight.is_whole || sight.is_late);
  EXPECT_THAT(sight.said, ElementsAre("begun"));
}

}  // namespace
}  // namespace muster::launcher
