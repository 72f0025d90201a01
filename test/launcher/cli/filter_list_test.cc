#include "launcher/cli/flag_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(FilterListTest, TwoCommasAreOne) {
  using testing::ElementsAre;
  EXPECT_THAT(SplitFilters("a,b"), ElementsAre("a", "b"));
  EXPECT_THAT(SplitFilters("a,,b"), ElementsAre("a,b"));
  EXPECT_THAT(SplitFilters("a,,,b"), ElementsAre("a,", "b"));
  EXPECT_THAT(SplitFilters(" a b "), ElementsAre(" a b "));
}

TEST(FilterListTest, NothingIsNoFilterRatherThanOneThatMatchesAll) {
  EXPECT_TRUE(SplitFilters("").empty());
  EXPECT_TRUE(SplitFilters(",").empty());
}

}  // namespace
}  // namespace muster::launcher
