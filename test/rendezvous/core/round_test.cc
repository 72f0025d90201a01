// Runs the transcripts test/rendezvous/testdata/round_*.txt. Their commands:
//
//   round N nodes=MIN:MAX [last_call=MS] [join_timeout=MS] [returning=a:0,b:1]
//                        a new round, opened now; returning: nodes of the round before, and their
//                        ranks
//   join NODE [hint=N] [address=A] [topology=x/y] [slots=N]
//                        member, spare, again or too late
//   leave NODE
//   tick
//   next_deadline        @MS or none
//   explain              the sentence
//   explain_spare        the sentence for a spare
//   members              the ranks and why, a line each
//
// Every command is followed by the state that it brought the round into: "complete" or "timed out".
#include "rendezvous/core/job/round.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "test/rendezvous/support/transcript.h"
#include "test/rendezvous/support/words.h"

namespace muster::rendezvous {
namespace {

using Lines = std::vector<std::string>;

std::string OutcomeText(Round::JoinOutcome outcome) {
  switch (outcome) {
    case Round::JoinOutcome::kMember:
      return "member";
    case Round::JoinOutcome::kSpare:
      return "spare";
    case Round::JoinOutcome::kAgain:
      return "again";
    case Round::JoinOutcome::kTooLate:
      return "too late";
  }
  return "?";
}

std::vector<Round::Returning> ReturningFrom(const std::string& text) {
  std::vector<Round::Returning> returning;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(entry, ':');
    int rank = 0;
    EXPECT_TRUE(absl::SimpleAtoi(parts.second, &rank)) << text;
    returning.push_back({parts.first, parts.first, rank});
  }
  return returning;
}

class RoundPlayer {
 public:
  Lines operator()(TimePoint now, const Lines& all_words) {
    const Words words(all_words);
    const std::string& command = words.command();
    if (command == "round") {
      int number = 0;
      EXPECT_TRUE(absl::SimpleAtoi(words.At(0), &number));
      round_.emplace(number, SettingsFrom(words), ReturningFrom(words.Get("returning", "")), now);
      return {};
    }
    const Round::State before = round_->state();
    Lines lines;
    if (command == "join") {
      lines.push_back(OutcomeText(round_->Join(NodeFrom(words.At(0), words), now)));
    } else if (command == "leave") {
      round_->Leave(words.At(0), now);
    } else if (command == "tick") {
      round_->Tick(now);
    } else if (command == "next_deadline") {
      lines.push_back(DeadlineText(round_->NextDeadline()));
    } else if (command == "explain") {
      lines.push_back(round_->Explain(now));
    } else if (command == "explain_spare") {
      lines.push_back(round_->ExplainSpare());
    } else if (command == "members") {
      for (const Placement& member : round_->members()) {
        lines.push_back(
            absl::StrCat(member.group_rank, " ", member.node->host, ": ", member.reason));
      }
    } else {
      lines.push_back("no such command: " + command);
    }
    if (round_->state() != before) {
      lines.push_back(round_->state() == Round::State::kComplete ? "complete" : "timed out");
    }
    return lines;
  }

 private:
  std::optional<Round> round_;
};

class RoundTranscript : public testing::TestWithParam<std::string> {};

TEST_P(RoundTranscript, IsTrue) {
  ExpectTranscript(GetParam(), RoundPlayer());
}

INSTANTIATE_TEST_SUITE_P(Testdata, RoundTranscript, testing::ValuesIn(TranscriptPaths("round_")),
                         [](const auto& info) { return TranscriptName(info.param); });

}  // namespace
}  // namespace muster::rendezvous
