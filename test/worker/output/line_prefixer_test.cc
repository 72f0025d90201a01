#include "worker/output/lines.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

const LinePrefix kPrefix("[0]:", 17);
const LinePrefixer::Time kNow;

struct Case {
  const char* situation;
  std::vector<std::string> fed;
  // The results of each Feed(), then of Finish().
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
    LinePrefixer prefixer(kPrefix);
    std::vector<std::string> shown;
    for (const std::string& bytes : test.fed) shown.push_back(prefixer.Feed(bytes, kNow));
    shown.push_back(prefixer.Finish(kNow));
    EXPECT_EQ(shown, test.shown) << test.situation;
  }
}

TEST(LinePrefixerTest, HowTheBytesArriveDoesNotMatter) {
  for (const Case& test : kCases) {
    std::string expected;
    for (const std::string& text : test.shown) expected += text;
    LinePrefixer prefixer(kPrefix);
    std::string shown;
    for (const std::string& bytes : test.fed) {
      for (const char byte : bytes) shown += prefixer.Feed(std::string(1, byte), kNow);
    }
    shown += prefixer.Finish(kNow);
    EXPECT_EQ(shown, expected) << test.situation;
  }
}

TEST(LinePrefixerTest, AnEndlessLineComesInPiecesWithOnePrefix) {
  const std::string piece(LinePrefixer::kMaxLine, 'x');
  LinePrefixer prefixer(kPrefix);
  EXPECT_EQ(prefixer.Feed(piece, kNow), "") << "up to the limit it is held back";
  EXPECT_EQ(prefixer.Feed("y", kNow), "[0]:" + piece + "y");
  EXPECT_EQ(prefixer.Feed(piece + "z", kNow), piece + "z");
  EXPECT_EQ(prefixer.Feed("end\nnext\n", kNow), "end\n[0]:next\n");
}

TEST(LinePrefixerTest, AnEndlessLineWithoutEndGetsOne) {
  const std::string line(LinePrefixer::kMaxLine + 1, 'x');
  LinePrefixer prefixer(kPrefix);
  EXPECT_EQ(prefixer.Feed(line, kNow), "[0]:" + line);
  EXPECT_EQ(prefixer.Finish(kNow), "\n");
  EXPECT_EQ(prefixer.Finish(kNow), "") << "once";
}

// On a terminal: the results of each Feed(), then of Finish(), each followed by a bar "|" and the
// line that is being rewritten.
const Case kRewritingCases[] = {
    {"a whole line", {"one\n"}, {"[0]:one\n|", ""}},
    {"a line in pieces is held back", {"on", "e\n"}, {"|", "[0]:one\n|", ""}},
    {"a progress bar", {"10%\r", "20%\r", "\n"}, {"|[0]:10%", "|[0]:20%", "[0]:20%\n|", ""}},
    {"one that returns first",
     {"\r10%", "\r20%", "\rdone\n"},
     {"|[0]:10%", "|[0]:20%", "[0]:done\n|", ""}},
    {"one that is drawn in pieces",
     {"\r1", "0%", "\r"},
     {"|[0]:1", "|[0]:10%", "|[0]:10%", "[0]:10%\n"}},
    {"only the last state counts", {"1\r2\r3\rdone\nnext\n"}, {"[0]:done\n[0]:next\n|", ""}},
    {"Windows line ends", {"one\r\ntwo\r", "\n"}, {"[0]:one\n|[0]:two", "[0]:two\n|", ""}},
    {"a bar without an end", {"10%\r20%"}, {"|[0]:20%", "[0]:20%\n"}},
};

TEST(LinePrefixerTest, OnATerminalALineIsRewrittenUntilItsNewline) {
  for (const Case& test : kRewritingCases) {
    LinePrefixer prefixer(kPrefix, CarriageReturn::kRewritesLine);
    std::vector<std::string> shown;
    for (const std::string& bytes : test.fed) {
      const std::string lines = prefixer.Feed(bytes, kNow);
      shown.push_back(lines + "|" + prefixer.Rewritten(kNow));
    }
    shown.push_back(prefixer.Finish(kNow));
    EXPECT_EQ(shown, test.shown) << test.situation;
  }
}

// "A debugger's prompt is hidden until something is typed."
TEST(LinePrefixerTest, APartOfALineCanBeHadBeforeItsEnd) {
  for (const auto carriage_return : {CarriageReturn::kEndsLine, CarriageReturn::kRewritesLine}) {
    LinePrefixer prefixer(kPrefix, carriage_return);
    EXPECT_FALSE(prefixer.holds_back());
    EXPECT_EQ(prefixer.Feed("one\n(Pdb) ", kNow), "[0]:one\n");
    EXPECT_TRUE(prefixer.holds_back());
    EXPECT_EQ(prefixer.Part(kNow), "[0]:(Pdb) ");
    EXPECT_EQ(prefixer.Feed("ov", kNow), "");
    EXPECT_EQ(prefixer.Part(kNow), "[0]:(Pdb) ov");
    EXPECT_EQ(prefixer.Feed("er\n", kNow), "[0]:(Pdb) over\n") << "the whole line";
    EXPECT_FALSE(prefixer.holds_back());
  }
}

TEST(LinePrefixerTest, ALineKeepsThePrefixWithWhichItWasShown) {
  LinePrefixer prefixer(LinePrefix("${time}|", 17));
  prefixer.Feed("(Pdb) ", kNow);
  const std::string part = prefixer.Part(kNow);
  const LinePrefixer::Time later = kNow + std::chrono::seconds(3);
  EXPECT_EQ(prefixer.Feed("over\n", later), part + "over\n");
  EXPECT_NE(prefixer.Feed("over\n", later), part.substr(0, part.find('|')) + "|over\n");
}

TEST(LinePrefixerTest, ABarIsNotHeldBack) {
  LinePrefixer prefixer(kPrefix, CarriageReturn::kRewritesLine);
  prefixer.Feed("\r10%", kNow);
  EXPECT_FALSE(prefixer.holds_back()) << "it is shown by being rewritten";
}

TEST(LinePrefixerTest, FiltersLetOnlyTheirLinesThrough) {
  LinePrefixer prefixer(kPrefix);
  prefixer.ShowOnly({"loss", "[0]"});
  EXPECT_EQ(prefixer.Feed("step 1\nlo", kNow), "") << "the prefix does not count";
  EXPECT_EQ(prefixer.Feed("ss 0.5\r\nstep 2\nx[0]\n", kNow), "[0]:loss 0.5\n[0]:x[0]\n");
  EXPECT_EQ(prefixer.Feed("last loss", kNow), "");
  EXPECT_EQ(prefixer.Finish(kNow), "[0]:last loss\n");
}

TEST(LinePrefixerTest, OfAnEndlessLineTheBeginningDecides) {
  const std::string piece(LinePrefixer::kMaxLine, 'x');
  LinePrefixer prefixer(kPrefix);
  prefixer.ShowOnly({"loss"});
  EXPECT_EQ(prefixer.Feed("y" + piece, kNow), "");
  EXPECT_EQ(prefixer.Feed("loss\nloss\n", kNow), "[0]:loss\n");
  EXPECT_EQ(prefixer.Feed("loss" + piece, kNow), "[0]:loss" + piece);
  EXPECT_EQ(prefixer.Feed("end\n", kNow), "end\n");
}

// "With --duplicate-stdout-filters '' torchrun copies every line."
TEST(LinePrefixerTest, AnEmptyFilterIsInEveryLine) {
  LinePrefixer prefixer(kPrefix);
  prefixer.ShowOnly({""});
  EXPECT_EQ(prefixer.Feed("one\n\n", kNow), "[0]:one\n[0]:\n");
}

}  // namespace
}  // namespace muster::worker
