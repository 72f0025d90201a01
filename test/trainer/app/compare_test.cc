#include "trainer/app/compare.h"

#include <limits>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(CompareTest, EachMethodIsALineAgainstTheFirst) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string table = FormatComparison({{"single", 1000, 0, 0, 0.5, 0.6, 0.9},
                                              {"ddp", 1900, 2e6, 2.5e6, 0.5, none, none},
                                              {"average", 500, none, 2.5e6, 0.5, none, none}});
  EXPECT_NE(table.find("single          1000     1.00        0.000        0.000     0.5000    "
                       "0.6000   90.00 %\n"),
            std::string::npos)
      << table;
  // With Gloo the formula stood beside itself, as if it had been counted.
  EXPECT_NE(table.find("average          500     0.50            -        2.500     0.5000         "
                       "-         -\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("ddp             1900     1.90        2.000        2.500     0.5000         "
                       "-         -\n"),
            std::string::npos)
      << table;
}

}  // namespace
}  // namespace muster::trainer
