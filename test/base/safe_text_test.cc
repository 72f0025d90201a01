// A job that was called "exp\u202e7niart" was listed by `muster status` as another, and two that
// looked the same were not.
#include "base/safe_text.h"
#include "base/text.h"

#include <string>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(SafeTextTest, WhatIsNotSeenIsReplaced) {
  const struct {
    std::string text;
    std::string shown;
  } cases[] = {
      {"a\u202eb", "a?b"},                                 // from right to left
      {"a\u202ab\u202cc", "a?b?c"},                        // an embedding and its end
      {"a\u2066b\u2069c", "a?b?c"},                        // an isolate and its end
      {"\u200e\u200f\u061c", "???"}, {"a\u200bb", "a?b"},  // a zero-width space
      {"a\u200db", "a?b"},           {"a\u00adb", "a?b"},  // a soft hyphen
      {"a\u2060b\ufeff", "a?b?"},    {"\u034f\u115f\u3164\uffa0", "????"},  // fillers
      {"a\ufe0fb", "a?b"},                                                  // a variation selector
      {"a\U000e0041b", "a?b"},                                              // a tag
      {"a\U0001d173b", "a?b"},       {"a\u2028b\u2029c", "a?b?c"},
      {"a\ufff9b\ufffbc", "a?b?c"},  {"\x1b[2J\r\x7f\u009b", "?[2J???"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(SafeText(each.text), each.shown);
    EXPECT_EQ(SafeLine(each.text), each.shown);
  }
}

TEST(SafeTextTest, WhatIsSeenStays) {
  const std::string text = "Grüße 日本語 😀 العربية עברית \u2026 \u00a0 e\u0301";
  EXPECT_EQ(SafeText(text), text);
  EXPECT_EQ(SafeText("a\n\tb"), "a\n\tb");
  EXPECT_EQ(SafeLine("a\n\tb"), "a  b");
}

TEST(SafeTextTest, BytesThatAreNoUtf8AreReplacedOneByOne) {
  EXPECT_EQ(SafeText("a\xff\xc3"), "a??");
  EXPECT_EQ(SafeText("\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80"), "??? ?? ????");
  EXPECT_EQ(SafeText("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
}

TEST(SafeTextTest, ACharacterIsTakenWholeOrNotAtAll) {
  EXPECT_EQ(SafeText("日本", 5), "日");
  EXPECT_EQ(SafeText("日本", 6), "日本");
}

TEST(TerminalTextTest, CharactersAreCountedAndNotBytes) {
  EXPECT_EQ(Columns("größe"), 5);
  EXPECT_EQ(CutTo("größe", 3), "grö");
  EXPECT_EQ(PadTo("größe", 7), "größe  ");
  EXPECT_EQ(PadTo("größe", 2), "gr");
}

// A line of a log with them was two rows of the terminal, and what was below it was overwritten.
TEST(TerminalTextTest, WideCharactersTakeTwoColumnsAndMarksNone) {
  EXPECT_EQ(Columns("損失 0.5"), 8);
  EXPECT_EQ(CutTo("損失", 3), "損");
  EXPECT_EQ(PadTo("損失", 3), "損 ");
  EXPECT_EQ(Columns("e\u0301"), 1);
  EXPECT_EQ(CutTo("e\u0301x", 1), "e\u0301");
  EXPECT_EQ(Columns("🚀"), 2);
}

// A log that moved the cursor, and one that was written from right to left.
TEST(TerminalTextTest, NothingInItCommandsTheTerminal) {
  EXPECT_EQ(TerminalLine("\x1b[1;31merror\x1b[0m: \x1b[Kno"), "error: no");
  EXPECT_EQ(TerminalLine("\x1b[2J\x1b]0;title\a\x7f"), "^[[2J^[]0;title^G^?");
  EXPECT_EQ(TerminalLine("a\tb\t\tc"), "a       b               c");
  EXPECT_EQ(TerminalLine(std::string("\0x", 2)), "^@x");
  EXPECT_EQ(TerminalLine("\xff größe \xc2\x9b"
                         "1m"),
            "? größe ?1m");
  EXPECT_EQ(TerminalLine("exe.\xe2\x80\xae"
                         "gpj"),
            "exe.?gpj");
  EXPECT_EQ(TerminalLine("\x1b["), "^[[");
  EXPECT_EQ(TerminalLine("10%\r20%\r30%\r"), "30%") << "a progress bar";
  EXPECT_EQ(TerminalLine("two\nlines"), "two lines");
}

TEST(SafeTextTest, JsonLosesNothing) {
  EXPECT_EQ(SafeJson("{\n \"a\": \"x\u202ey ü\u200b\x7f\"}"),
            "{\n \"a\": \"x\\u202ey ü\\u200b\\u007f\"}");
  EXPECT_EQ(SafeJson("\"\U000e0041\""), "\"\\udb40\\udc41\"");
  EXPECT_EQ(SafeJson("\"\xff\""), "\"\xff\"");
}

}  // namespace
}  // namespace muster::base
