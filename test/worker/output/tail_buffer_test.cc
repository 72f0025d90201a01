#include "worker/output/lines.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

struct TailCase {
  const char* situation;
  std::vector<std::string> appended;
  std::string expected;
};

// All have room for 8 bytes.
const TailCase kTailCases[] = {
    {"nothing", {}, ""},
    {"fits", {"a\nb\n"}, "a\nb\n"},
    {"fits exactly", {"abc\n", "def\n"}, "abc\ndef\n"},
    {"no line is cut", {"abc\n", "def\n", "ghi\n"}, "def\nghi\n"},
    {"the cut line is left out", {"abcdef\n", "ghi\n"}, "ghi\n"},
    {"one endless line is shown as far as it fits", {"0123456789"}, "23456789"},
    {"its newline starts no line", {"0123456789\n"}, "3456789\n"},
    {"a large piece pushes everything else out", {"old\n", "0123456789\nnew\n"}, "new\n"},
    {"an unterminated last line stays", {"first line\n", "last"}, "last"},
};

TEST(TailBufferTest, KeepsTheLastLines) {
  for (const TailCase& test : kTailCases) {
    TailBuffer whole(8);
    TailBuffer bytewise(8);
    for (const std::string& piece : test.appended) {
      whole.Append(piece);
      for (const char byte : piece) bytewise.Append(std::string(1, byte));
    }
    EXPECT_EQ(whole.Text(), test.expected) << test.situation;
    EXPECT_EQ(bytewise.Text(), test.expected) << test.situation << ", byte by byte";
  }
}

TEST(TailBufferTest, NeverShowsMoreThanItsLimit) {
  TailBuffer tail;
  for (int i = 0; i < 10'000; ++i) tail.Append("line " + std::to_string(i) + "\n");
  const std::string text = tail.Text();
  EXPECT_LE(text.size(), kMaxTail);
  EXPECT_GT(text.size(), kMaxTail - 20);
  EXPECT_TRUE(text.starts_with("line "));
  EXPECT_TRUE(text.ends_with("\nline 9999\n"));
}

}  // namespace
}  // namespace muster::worker
