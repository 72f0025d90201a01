#include "launcher/cli/launch_config.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(RedirectsTest, OneNumberIsForEveryLocalRank) {
  const auto redirects = ParseRedirects("3");
  ASSERT_TRUE(redirects.ok());
  EXPECT_EQ(redirects->For(0), Streams::kBoth);
  EXPECT_EQ(redirects->For(63), Streams::kBoth);
}

TEST(RedirectsTest, MapIsForItsLocalRanksAlone) {
  const auto redirects = ParseRedirects("0:1,12:2,3:3");
  ASSERT_TRUE(redirects.ok());
  EXPECT_EQ(redirects->For(0), Streams::kStdout);
  EXPECT_EQ(redirects->For(1), Streams::kNone);
  EXPECT_EQ(redirects->For(3), Streams::kBoth);
  EXPECT_EQ(redirects->For(12), Streams::kStderr);
}

TEST(RedirectsTest, StreamsAreTwoBits) {
  EXPECT_TRUE(HasStdout(Streams::kStdout) && !HasStderr(Streams::kStdout));
  EXPECT_TRUE(!HasStdout(Streams::kStderr) && HasStderr(Streams::kStderr));
  EXPECT_TRUE(HasStdout(Streams::kBoth) && HasStderr(Streams::kBoth));
  EXPECT_FALSE(HasStdout(Streams::kNone) || HasStderr(Streams::kNone));
}

TEST(RedirectsTest, WhatIsNeitherIsRefused) {
  for (const char* text : {"", "4", "-1", "33", "x", "0:4", "0:3,", ",0:3", "0:", ":3", "0:3 1:2",
                           "0: 3", "-1:3", "99999999999:3", "0:3,1", "0:1:2"}) {
    EXPECT_FALSE(ParseRedirects(text).ok()) << text;
  }
}

}  // namespace
}  // namespace muster::launcher
