#include "rendezvous/core/values/phrases.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

struct Case {
  std::string text;
  std::string shown;
};

TEST(PrintableTest, OrdinaryTextIsShownAsItIs) {
  for (const std::string text :
       {"", "rank 3 exited with code 3", "two\nlines\tand a tab", "Grüße", "日本語", "😀", "~"}) {
    EXPECT_EQ(Printable(text, 100), text);
  }
}

TEST(PrintableTest, WhatWouldCommandATerminalIsReplaced) {
  const Case cases[] = {
      {"\x1b[2Jcleared", "?[2Jcleared"},
      {"over\rwritten", "over?written"},
      {"bell\a", "bell?"},
      {std::string("nul\0nul", 7), "nul?nul"},
      {"del\x7f", "del?"},
      {"\xc2\x9b"
       "2J",
       "?2J"},  // U+009B, which is ESC [ in one character
      {"\xc2\x80\xc2\x9f\xc2\xa0", "??\xc2\xa0"},
      {"exp\u202e7niart", "exp?7niart"},
  };
  for (const Case& c : cases) EXPECT_EQ(Printable(c.text, 100), c.shown);
}

TEST(PrintableTest, BytesThatAreNoUtf8AreReplacedOneByOne) {
  const Case cases[] = {
      {"a\xff"
       "b",
       "a?b"},
      {"lone continuation \x80", "lone continuation ?"},
      {"cut short \xe6\x97", "cut short ??"},
      {"overlong \xc0\xaf", "overlong ??"},
      {"overlong \xe0\x80\xaf", "overlong ???"},
      {"surrogate \xed\xa0\x80", "surrogate ???"},
      {"too high \xf4\x90\x80\x80", "too high ????"},
      {"too high \xf5\x80\x80\x80", "too high ????"},
      {"highest \xf4\x8f\xbf\xbf", "highest \xf4\x8f\xbf\xbf"},
      {"\xe6\x97x", "??x"},
  };
  for (const Case& c : cases) EXPECT_EQ(Printable(c.text, 100), c.shown);
}

TEST(PrintableTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Printable("abcdef", 3), "abc");
  EXPECT_EQ(Printable("日本", 6), "日本");
  EXPECT_EQ(Printable("日本", 5), "日");
  EXPECT_EQ(Printable("日本", 2), "");
  EXPECT_EQ(Printable("x", 0), "");
}

TEST(PrintableTest, OneLineHasNoLineFeedsAndTabs) {
  EXPECT_EQ(OneLine("rank\t3\nexited", 100), "rank 3 exited");
  EXPECT_EQ(OneLine("a\nb\nc", 3), "a b");
}

}  // namespace
}  // namespace muster::rendezvous
