#include "rendezvous/wire/liveness_probe.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(DeathNoticeTest, SessionIsReadAsItWasWritten) {
  const std::string text = FormatDeathNotice("0123abcd");
  EXPECT_EQ(text.front(), kFirstOfDeathNotice);
  EXPECT_EQ(ParseDeathNotice(text), "0123abcd");
  EXPECT_LE(FormatDeathNotice(std::string(64, 's')).size(), kMaxDeathNotice);
}

TEST(DeathNoticeTest, WhatIsNotWholeIsNone) {
  for (const char* text : {"", "D", "DEAD", "DEAD ", "DEAD \n", "DEAD 0123", "dead 0123\n"}) {
    EXPECT_EQ(ParseDeathNotice(text), std::nullopt) << text;
  }
}

// Two lines, of which the second was parsed as part of the session's token.
TEST(DeathNoticeTest, OneWithMoreThanALineIsNone) {
  EXPECT_EQ(ParseDeathNotice("DEAD 0123\n4567\n"), std::nullopt);
  EXPECT_EQ(ParseDeathNotice("DEAD 0123\n\n"), std::nullopt);
}

}  // namespace
}  // namespace muster::rendezvous
