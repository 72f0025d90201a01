#include "base/safe_text.h"

#include <climits>
#include <string>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(FileNameTest, OnlyWhatAFileCannotBeCalledIsEscaped) {
  EXPECT_EQ(FileNameOf("my job", NAME_MAX), "my job");
  EXPECT_EQ(FileNameOf("me@host:7", NAME_MAX), "me@host:7");
  EXPECT_EQ(FileNameOf("größe", NAME_MAX), "größe");
  EXPECT_EQ(FileNameOf("../a/b", NAME_MAX), "..%2Fa%2Fb");
  EXPECT_EQ(FileNameOf(std::string("a\0b", 3), NAME_MAX), "a%00b");
}

TEST(FileNameTest, TwoNamesNeverBecomeTheSame) {
  EXPECT_NE(FileNameOf("a/b", NAME_MAX), FileNameOf("a%2Fb", NAME_MAX));
  EXPECT_EQ(FileNameOf("a%2Fb", NAME_MAX), "a%252Fb");
}

TEST(FileNameTest, NeitherAnEscapeNorACharacterIsCutInTwo) {
  EXPECT_EQ(FileNameOf("ab/", 4), "ab");
  EXPECT_EQ(FileNameOf("ab/", 5), "ab%2F");
  EXPECT_EQ(FileNameOf("aü", 2), "a");
  EXPECT_EQ(FileNameOf(std::string(300, 'x'), 246), std::string(246, 'x'));
}

}  // namespace
}  // namespace muster::base
