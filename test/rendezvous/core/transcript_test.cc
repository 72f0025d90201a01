#include "test/rendezvous/support/transcript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Says the time and every word, one line each; "quiet" says nothing.
std::vector<std::string> Echo(TimePoint now, const std::vector<std::string>& words) {
  if (words.front() == "quiet") return {};
  std::vector<std::string> lines = {
      absl::StrCat(now.time_since_epoch() / std::chrono::milliseconds(1))};
  for (const std::string& word : words) lines.push_back(word);
  return lines;
}

TEST(TranscriptTest, TrueTranscriptHasNoDifference) {
  constexpr char kText[] = R"(# A comment.

@0 quiet

@5 say  hello
  5
  say
  hello
)";
  const TranscriptResult result = RunTranscript("t.txt", kText, Echo);
  EXPECT_THAT(result.differences, IsEmpty());
  EXPECT_EQ(result.actual, kText);
}

TEST(TranscriptTest, QuotedWordsHoldSpacesEscapesAndNothing) {
  std::vector<std::string> seen;
  const auto remember = [&seen](TimePoint, const std::vector<std::string>& words) {
    seen = words;
    return std::vector<std::string>();
  };
  RunTranscript("t.txt", R"(@0 set "a b" "" key="\x41\"" )", remember);
  EXPECT_THAT(seen, ElementsAre("set", "a b", "", "key=A\""));
}

TEST(TranscriptTest, WrongMissingAndSurplusOutcomesAreAllReportedAtTheirCommand) {
  constexpr char kText[] = R"(@1 say
  1
  sing
@2 say
  2
@3 quiet
  surplus
)";
  const TranscriptResult result = RunTranscript("t.txt", kText, Echo);
  ASSERT_THAT(result.differences, SizeIs(3));
  EXPECT_EQ(result.differences[0].line, 1);
  EXPECT_EQ(result.differences[1].line, 4);
  EXPECT_EQ(result.differences[2].line, 6);
  EXPECT_THAT(result.differences[0].message, HasSubstr("sing"));
  EXPECT_EQ(result.actual, "@1 say\n  1\n  say\n@2 say\n  2\n  say\n@3 quiet\n");
}

TEST(TranscriptTest, LinesThatAreNoTranscriptAreReported) {
  for (const char* text : {"say\n", "@x say\n", "@5\n", "@0 \"open\n", "  outcome of nothing\n",
                           "@5 quiet\n@4 quiet\n"}) {
    EXPECT_THAT(RunTranscript("t.txt", text, Echo).differences, SizeIs(1)) << text;
  }
}

}  // namespace
}  // namespace muster::rendezvous
