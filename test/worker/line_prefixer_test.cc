#include "worker/line_prefixer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

struct Case {
  const char* situation;
  std::vector<std::string> fed;
  // What each Feed() gives, and what Finish() gives last.
  std::vector<std::string> shown;
};

const Case kCases[] = {
    {"a whole line", {"one\n"}, {"[0]:one\n", ""}},
    {"several lines at once", {"one\ntwo\n"}, {"[0]:one\n[0]:two\n", ""}},
    {"a line in pieces", {"on", "e", "\n"}, {"", "", "[0]:one\n", ""}},
    {"an end and a beginning", {"on", "e\ntw", "o\n"}, {"", "[0]:one\n", "[0]:two\n", ""}},
    {"an empty line", {"\n"}, {"[0]:\n", ""}},
    {"an unterminated last line", {"one\ntwo"}, {"[0]:one\n", "[0]:two\n"}},
    {"nothing", {}, {""}},
    {"a progress bar", {"10%\r", "20%\r", "done\n"}, {"[0]:10%\n", "[0]:20%\n", "[0]:done\n", ""}},
    {"a bar that returns first", {"\r10%", "\r20%", "\n"}, {"", "[0]:10%\n", "[0]:20%\n", ""}},
    {"Windows line ends", {"one\r\ntwo\r\n"}, {"[0]:one\n[0]:two\n", ""}},
    {"Windows line end in pieces", {"one\r", "\ntwo\n"}, {"[0]:one\n", "[0]:two\n", ""}},
};

TEST(LinePrefixerTest, ShowsWholeLinesWithOnePrefixEach) {
  for (const Case& test : kCases) {
    LinePrefixer prefixer("[0]:");
    std::vector<std::string> shown;
    for (const std::string& bytes : test.fed) shown.push_back(prefixer.Feed(bytes));
    shown.push_back(prefixer.Finish());
    EXPECT_EQ(shown, test.shown) << test.situation;
  }
}

TEST(LinePrefixerTest, HowTheBytesArriveDoesNotMatter) {
  for (const Case& test : kCases) {
    std::string expected;
    for (const std::string& text : test.shown) expected += text;
    LinePrefixer prefixer("[0]:");
    std::string shown;
    for (const std::string& bytes : test.fed) {
      for (const char byte : bytes) shown += prefixer.Feed(std::string(1, byte));
    }
    shown += prefixer.Finish();
    EXPECT_EQ(shown, expected) << test.situation;
  }
}

TEST(LinePrefixerTest, AnEndlessLineComesInPiecesWithOnePrefix) {
  const std::string piece(LinePrefixer::kMaxLine, 'x');
  LinePrefixer prefixer("[0]:");
  EXPECT_EQ(prefixer.Feed(piece), "") << "up to the limit it is held back";
  EXPECT_EQ(prefixer.Feed("y"), "[0]:" + piece + "y");
  EXPECT_EQ(prefixer.Feed(piece + "z"), piece + "z");
  EXPECT_EQ(prefixer.Feed("end\nnext\n"), "end\n[0]:next\n");
}

TEST(LinePrefixerTest, AnEndlessLineWithoutEndGetsOne) {
  const std::string line(LinePrefixer::kMaxLine + 1, 'x');
  LinePrefixer prefixer("[0]:");
  EXPECT_EQ(prefixer.Feed(line), "[0]:" + line);
  EXPECT_EQ(prefixer.Finish(), "\n");
  EXPECT_EQ(prefixer.Finish(), "") << "once";
}

}  // namespace
}  // namespace muster::worker
