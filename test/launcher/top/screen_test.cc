#include "launcher/top/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;

TEST(ScreenTest, WhatIsBrokenLosesNothing) {
  EXPECT_THAT(Broken("one  two", 4), ElementsAre("one ", " two"));
  EXPECT_THAT(Broken("a損失", 2), ElementsAre("a", "損", "失"));
  EXPECT_THAT(Broken("", 4), ElementsAre(""));
}

TEST(ScreenTest, LongTextsAreBrokenBetweenWords) {
  EXPECT_THAT(Wrapped("rank 3 exited with code 1", 10),
              ElementsAre("rank 3", "exited", "with code", "1"));
  EXPECT_THAT(Wrapped("abcdefghij kl", 4), ElementsAre("abcd", "efgh", "ij", "kl"));
  EXPECT_THAT(Wrapped("exactly 10", 10), ElementsAre("exactly 10"));
  EXPECT_THAT(Wrapped("one  two", 4), ElementsAre("one", "two"));
  EXPECT_THAT(Wrapped("", 10), ElementsAre(""));
  EXPECT_THAT(Wrapped("ab", 0), ElementsAre("a", "b"));
  EXPECT_THAT(Wrapped("損失", 1), ElementsAre("損", "失")) << "there is an end to it";
}

TEST(ScreenTest, WhatDoesNotFitIsCut) {
  Screen screen{.lines = {{{"abc"}, {"def", {.bold = true}}}, {{"x"}}, {{"y"}}},
                .cursor = ScreenPlace{.row = 2, .column = 0}};
  Fit(screen, {.columns = 4, .rows = 2});
  EXPECT_THAT(screen.lines, ElementsAre(ElementsAre(Span{"abc"}, Span{"d", {.bold = true}}),
                                        ElementsAre(Span{"x"})));
  EXPECT_EQ(screen.cursor, std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
