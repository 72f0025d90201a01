#include "base/text.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCharacters) {
  EXPECT_EQ(TextTable({{"NAME", "N", "WHAT"}, {"größe", "123", "x"}, {"a", "1", "long text"}}),
            "NAME   N    WHAT\n"
            "größe  123  x\n"
            "a      1    long text\n");
  EXPECT_EQ(TextTable({{"損失", "x"}, {"loss", "y"}}), "損失  x\nloss  y\n");
}

TEST(TextTableTest, CellsAreNeitherEmptyNorMoveTheCursor) {
  EXPECT_EQ(TextTable({{"", "a\x1b[2J\nb"}}), "-  a?[2J b\n");
}

TEST(TextTableTest, NoRowsAreNoText) {
  EXPECT_EQ(TextTable({}), "");
}

}  // namespace
}  // namespace muster::base
