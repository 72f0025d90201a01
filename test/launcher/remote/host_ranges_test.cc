#include "launcher/remote/host_list.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using Names = std::vector<std::string>;

TEST(HostRangesTest, TextWithoutBracketsIsItself) {
  EXPECT_EQ(*ExpandRanges("node1.cluster"), (Names{"node1.cluster"}));
}

TEST(HostRangesTest, RangesAndNumbersStandInTheOrderInWhichTheyAreWritten) {
  EXPECT_EQ(*ExpandRanges("n[7,1-3]"), (Names{"n7", "n1", "n2", "n3"}));
}

TEST(HostRangesTest, NumbersAreAsWideAsTheFirstIsWritten) {
  EXPECT_EQ(*ExpandRanges("n[08-11]"), (Names{"n08", "n09", "n10", "n11"}));
  EXPECT_EQ(*ExpandRanges("n[8-11]"), (Names{"n8", "n9", "n10", "n11"}));
  EXPECT_EQ(*ExpandRanges("n[099-100]-ib"), (Names{"n099-ib", "n100-ib"}));
}

TEST(HostRangesTest, SeveralBracketsAreAllTheirCombinations) {
  EXPECT_EQ(*ExpandRanges("r[1-2]n[3-4]"), (Names{"r1n3", "r1n4", "r2n3", "r2n4"}));
}

std::string Problem(const char* text) {
  const auto names = ExpandRanges(text);
  return names.ok() ? "" : std::string(names.status().message());
}

TEST(HostRangesTest, EachMistakeHasItsSentence) {
  EXPECT_EQ(Problem("n[1-3"), "has a [ without its ]; write node[1-3]");
  EXPECT_EQ(Problem("n1-3]"), "has a ] without its [; write node[1-3]");
  EXPECT_EQ(Problem("n[9-3]"), "has a backward range, 9-3; write 3-9");
  EXPECT_EQ(Problem("n[a-c]"),
            "has 'a-c' in its brackets, which is neither a number nor a range of numbers; write "
            "node[1-3,7]");
  EXPECT_EQ(Problem("n[]"),
            "has '' in its brackets, which is neither a number nor a range of numbers; write "
            "node[1-3,7]");
  EXPECT_EQ(Problem("n[-3]"),
            "has '-3' in its brackets, which is neither a number nor a range of numbers; write "
            "node[1-3,7]");
}

TEST(HostRangesTest, SlipThatMeansMoreHostsThanThereAreIsRefusedBeforeItCostsMemory) {
  for (const char* text : {"n[0-999999999]", "n[1-99999]m[1-99999]", "n[1-99999,1-99999]",
                           "n[1-1000]x[1-1000]y[1-1000]z[1-1000]"}) {
    EXPECT_EQ(Problem(text), "stands for more than 100000 hosts; check its ranges") << text;
  }
  EXPECT_EQ(ExpandRanges("n[1-100000]")->size(), 100'000u);
}

}  // namespace
}  // namespace muster::launcher
