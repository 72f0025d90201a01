// Words as found by the regular expressions. text_encoder_test.cc covers whole texts.
#include "trainer/text/word_rule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::trainer {
namespace {

using Words = std::vector<std::string>;

Words WordsOf(WordRule rule, std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t length = FirstWord(rule, text, /*complete=*/true);
    EXPECT_GT(length, 0u);
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

TEST(CharKindTest, KindsAreThoseOfUnicode) {
  const std::pair<std::string, CharKind> cases[] = {
      {"a", CharKind::kLetter},          {"Z", CharKind::kLetter},
      {"7", CharKind::kNumber},          {"_", CharKind::kOther},
      {" ", CharKind::kSpace},           {"\n", CharKind::kSpace},
      {"\x0b", CharKind::kSpace},        {"\x1c", CharKind::kOther},
      {"\u00aa", CharKind::kLetter},     {"\u00b2", CharKind::kNumber},
      {"\u00bd", CharKind::kNumber},     {"\u0085", CharKind::kSpace},
      {"\u00a0", CharKind::kSpace},      {"\u0301", CharKind::kOther},
      {"\u0416", CharKind::kLetter},     {"\u0663", CharKind::kNumber},
      {"\u1680", CharKind::kSpace},      {"\u2028", CharKind::kSpace},
      {"\u200b", CharKind::kOther},      {"\u2167", CharKind::kNumber},
      {"\u3000", CharKind::kSpace},      {"\u4e2d", CharKind::kLetter},
      {"\u9fff", CharKind::kLetter},     {"\ufeff", CharKind::kOther},
      {"\U0001d54f", CharKind::kLetter}, {"\U0001f600", CharKind::kOther},
      {"\U00020000", CharKind::kLetter}, {"\U000323af", CharKind::kLetter},
      {"\U000323b0", CharKind::kOther},  {"\U0010ffff", CharKind::kOther},
  };
  for (const auto& [text, kind] : cases) {
    const Char found = CharAt("x" + text + "x", 1);
    EXPECT_EQ(found.kind, kind) << text;
    EXPECT_EQ(found.bytes, text.size()) << text;
  }
  EXPECT_EQ(CharAt("x", 1).kind, CharKind::kEnd);
}

TEST(CharKindTest, BytesThatAreNoUtf8AreCharactersOfTheirOwn) {
  // Alone, truncated, overlong, a surrogate, above all code points.
  for (const char* text :
       {"\x80", "\xc3", "\xc3x", "\xe4\xb8", "\xe4\xb8x", "\xc0\x80", "\xe0\x80\x80",
        "\xf0\x80\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_EQ(CharAt(text, 0).kind, CharKind::kOther);
    EXPECT_EQ(CharAt(text, 0).bytes, 1);
  }
}

TEST(WordRuleTest, ASpaceBelongsToTheWordBehindIt) {
  EXPECT_EQ(WordsOf(WordRule::kGpt2, "a  b c1 2!? x\n\n y "),
            (Words{"a", " ", " b", " c", "1", " 2", "!?", " x", "\n\n", " y", " "}));
  EXPECT_EQ(WordsOf(WordRule::kGpt4, "a  b c1 2!? x\n\n y "),
            (Words{"a", " ", " b", " c", "1", " ", "2", "!?", " x", "\n\n", " y", " "}));
}

TEST(WordRuleTest, ContractionsAreWords) {
  EXPECT_EQ(WordsOf(WordRule::kGpt2, "we'll IT'S 'tis"),
            (Words{"we", "'ll", " IT", "'", "S", " '", "tis"}));
  EXPECT_EQ(WordsOf(WordRule::kGpt4, "we'll IT'S 'tis"),
            (Words{"we", "'ll", " IT", "'S", " '", "tis"}));
}

TEST(WordRuleTest, LinesAndNumbersOfGpt4) {
  EXPECT_EQ(WordsOf(WordRule::kGpt4, "12345;\r\n  x  \n \n  y"),
            (Words{"123", "45", ";\r\n", " ", " x", "  \n \n", " ", " y"}));
}

// The end of a piece is not the end of the text.
TEST(WordRuleTest, AWordIsNotCertainBeforeWhatFollowsItIsSeen) {
  for (const WordRule rule : {WordRule::kGpt2, WordRule::kGpt4}) {
    for (const char* text : {"a", "'", "'l", " ", "  ", "\n", "1", "!", "word\xc3"}) {
      EXPECT_EQ(FirstWord(rule, text, /*complete=*/false), 0u) << text;
      EXPECT_GT(FirstWord(rule, text, /*complete=*/true), 0u) << text;
    }
    EXPECT_EQ(FirstWord(rule, "word of a text", /*complete=*/false), 4u);
  }
}

TEST(WordRuleTest, OnlyTheTwoExpressionsAreKnown) {
  EXPECT_EQ(RuleOf(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
            WordRule::kGpt2);
  EXPECT_EQ(RuleOf(R"(\s+)"), std::nullopt);
  EXPECT_EQ(RuleOf(""), std::nullopt);
}

}  // namespace
}  // namespace muster::trainer
