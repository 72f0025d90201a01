#include "trainer/app/training/resume.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using Time = std::chrono::system_clock::time_point;
using std::chrono::microseconds;

TEST(JobNameTest, LaterJobsSortAfterEarlierOnes) {
  const std::string first = MakeJobName(Time(microseconds(1'763'840'283'123'456)), "vision");
  EXPECT_LT(first, MakeJobName(Time(microseconds(1'763'840'283'123'457)), "a"));
  EXPECT_NE(first, MakeJobName(Time(microseconds(1'763'840'283'123'456)), "vision"));
}

TEST(JobNameTest, KnowsItsRun) {
  const std::string name = MakeJobName(Time(), "vision");
  EXPECT_TRUE(IsOfRun(name, "vision"));
  EXPECT_FALSE(IsOfRun(name, "vis"));
  EXPECT_FALSE(IsOfRun(name, ""));
  EXPECT_FALSE(IsOfRun("", ""));
  EXPECT_TRUE(IsOfRun(MakeJobName(Time(), ""), ""));
}

TEST(JobNameTest, IsOneShortLineWhateverTheRunIdIs) {
  const std::string odd = "two words\n" + std::string(1000, 'x');
  const std::string name = MakeJobName(Time(), odd);
  EXPECT_LE(name.size(), 128u);
  EXPECT_EQ(std::count(name.begin(), name.end(), '\n'), 0);
  EXPECT_TRUE(IsOfRun(name, odd));
}

}  // namespace
}  // namespace muster::trainer
