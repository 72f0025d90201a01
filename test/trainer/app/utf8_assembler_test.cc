#include "trainer/app/generate.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using Pieces = std::vector<std::string>;

// What comes out for each byte of `text`, and at the end.
Pieces PiecesOf(std::string_view text) {
  Utf8Assembler assembler;
  Pieces pieces;
  for (const char byte : text) pieces.push_back(assembler.Add(byte));
  pieces.push_back(assembler.Finish());
  return pieces;
}

TEST(Utf8AssemblerTest, CharactersComeOutWhole) {
  EXPECT_EQ(PiecesOf("a\xC3\xA4"), (Pieces{"a", "", "\xC3\xA4", ""}));
  EXPECT_EQ(PiecesOf("\xE2\x82\xAC"), (Pieces{"", "", "\xE2\x82\xAC", ""}));
  EXPECT_EQ(PiecesOf("\xF0\x9F\x98\x80!"), (Pieces{"", "", "", "\xF0\x9F\x98\x80", "!", ""}));
}

TEST(Utf8AssemblerTest, BytesThatBeginNothingComeOutAtOnce) {
  EXPECT_EQ(PiecesOf("\x80\xC1\xF5\xFF"), (Pieces{"\x80", "\xC1", "\xF5", "\xFF", ""}));
}

TEST(Utf8AssemblerTest, ACharacterThatBreaksOffComesOutWithWhatFollows) {
  EXPECT_EQ(PiecesOf("\xE2\x82z"), (Pieces{"", "", "\xE2\x82z", ""}));
  EXPECT_EQ(PiecesOf("\xE2\xC3\xA4"), (Pieces{"", "\xE2", "\xC3\xA4", ""}));
}

TEST(Utf8AssemblerTest, TheTextMayEndWithinACharacter) {
  EXPECT_EQ(PiecesOf("\xF0\x9F"), (Pieces{"", "", "\xF0\x9F"}));
}

}  // namespace
}  // namespace muster::trainer
