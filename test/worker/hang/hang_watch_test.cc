// Transcripts: signs of life and times go in, the overdue workers come out.
#include "worker/hang/hang_watch.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HangWatchTest : public testing::Test {
 protected:
  static HangWatch::Time At(milliseconds time) { return HangWatch::Time(seconds(1000) + time); }

  // A watch with a timeout of 10 s, from now on.
  static HangWatch WatchFor10S(const std::vector<int>& ranks, bool output_counts = false) {
    HangWatch watch({.timeout = seconds(10), .output_counts = output_counts});
    watch.Start(ranks, At(seconds(0)));
    return watch;
  }

  // The suspects: "1, 0", "nobody", or "not yet".
  static std::string Suspects(const HangWatch& watch) {
    const auto suspects = watch.Suspects();
    if (!suspects) return "not yet";
    std::string text;
    for (const Silence& one : *suspects) {
      text += (text.empty() ? "" : ", ") + std::to_string(one.rank);
    }
    return text.empty() ? "nobody" : text;
  }

  // All overdue ranks: "1 after 10000" for rank 1 after ten seconds of silence.
  static std::string Overdue(HangWatch& watch, milliseconds now) {
    std::string text;
    for (const Silence& silence : watch.Overdue(At(now))) {
      text += (text.empty() ? "" : ", ") + std::to_string(silence.rank) + " after " +
              std::to_string(silence.silent.count());
      if (silence.before_first_sign) text += " from the start";
      if (silence.last_step) text += " at step " + std::to_string(*silence.last_step);
    }
    return text;
  }
};

TEST_F(HangWatchTest, ARankThatStopsBeatingIsToldOnce) {
  HangWatch watch = WatchFor10S({0, 1});
  EXPECT_EQ(watch.NextDeadline(), std::nullopt) << "nobody has beaten yet";
  watch.OnBeat(0, 1, At(seconds(1)));
  watch.OnBeat(1, 1, At(seconds(2)));
  EXPECT_EQ(watch.NextDeadline(), At(seconds(11)));
  watch.OnBeat(0, 2, At(seconds(5)));
  EXPECT_EQ(watch.NextDeadline(), At(seconds(12)));
  EXPECT_EQ(Overdue(watch, milliseconds(11'999)), "");
  EXPECT_FALSE(watch.is_silent(1));
  EXPECT_EQ(Overdue(watch, seconds(12)), "1 after 10000 at step 1");
  EXPECT_TRUE(watch.is_silent(1));
  EXPECT_FALSE(watch.is_silent(0) || watch.is_silent(7));
  EXPECT_EQ(Overdue(watch, seconds(12)), "");
  EXPECT_EQ(watch.NextDeadline(), At(seconds(15))) << "the other one's";
  watch.OnBeat(1, 2, At(seconds(13)));
  EXPECT_FALSE(watch.is_silent(1));
}

// "After fg my ranks were taken to hang, and one was killed."
TEST_F(HangWatchTest, TimeInWhichTheRunWasSuspendedCountsForNobody) {
  HangWatch watch = WatchFor10S({0, 1});
  watch.OnBeat(0, 1, At(seconds(1)));
  watch.OnBeat(1, 1, At(seconds(2)));
  watch.StartAfresh(At(seconds(500)));
  EXPECT_EQ(watch.NextDeadline(), At(seconds(510)));
  EXPECT_EQ(Overdue(watch, seconds(510)), "0 after 10000 at step 1, 1 after 10000 at step 1");
  watch.StartAfresh(At(seconds(900)));
  EXPECT_TRUE(watch.is_silent(0)) << "it was before";
}

// The hanging rank's last beat came 2 ms after those of the others, which were late first, and one
// of them was killed.
TEST_F(HangWatchTest, RanksThatFellSilentAtTheSameTimeAreJudgedTogether) {
  HangWatch watch = WatchFor10S({0, 1, 2, 3});
  EXPECT_EQ(Suspects(watch), "nobody");
  watch.OnBeat(2, 1, At(milliseconds(1000)));
  watch.OnBeat(0, 1, At(milliseconds(1001)));
  watch.OnBeat(1, 1, At(milliseconds(1002)));
  watch.OnBeat(3, 1, At(milliseconds(2500)));
  EXPECT_EQ(Suspects(watch), "nobody") << "nobody is late";
  EXPECT_EQ(Overdue(watch, milliseconds(11'001)),
            "0 after 10000 at step 1, 2 after 10001 at step 1");
  EXPECT_EQ(Suspects(watch), "not yet") << "1 will be late in a moment";
  EXPECT_EQ(Overdue(watch, milliseconds(11'002)), "1 after 10000 at step 1");
  EXPECT_EQ(Suspects(watch), "2, 0, 1") << "3 was still alive for more than a second";
  Overdue(watch, milliseconds(12'500));
  EXPECT_EQ(Suspects(watch), "2, 0, 1") << "nor does it matter when it is asked";
}

TEST_F(HangWatchTest, WhoGoesOnIsNotToBlame) {
  HangWatch watch = WatchFor10S({0, 1, 2});
  for (const int rank : {0, 1, 2}) watch.OnBeat(rank, 1, At(milliseconds(1000 + rank)));
  Overdue(watch, milliseconds(11'001));
  watch.OnBeat(2, 2, At(milliseconds(11'001)));
  EXPECT_EQ(Suspects(watch), "0, 1");
  watch.OnExited(0);
  EXPECT_EQ(Suspects(watch), "1");
  watch.OnBeat(1, 2, At(milliseconds(11'003)));
  EXPECT_EQ(Suspects(watch), "nobody");
}

TEST_F(HangWatchTest, AHaltAfterAHangLeavesItsSuspects) {
  HangWatch watch = WatchFor10S({0, 1});
  watch.OnBeat(0, 1, At(milliseconds(1000)));
  watch.OnBeat(1, 1, At(milliseconds(1500)));
  EXPECT_EQ(Overdue(watch, seconds(11)), "0 after 10000 at step 1");
  EXPECT_EQ(Overdue(watch, seconds(20)), "");
  EXPECT_EQ(Suspects(watch), "0") << "the time of 1 starts afresh";
}

// The node with the hanging rank was told to stop just before that rank was late, as a rank of
// another node was late first; it left no evidence.
TEST_F(HangWatchTest, WhoIsLateInAMomentTakesPartInTheHang) {
  HangWatch watch = WatchFor10S({0, 1, 2});
  watch.OnBeat(0, 1, At(milliseconds(1000)));
  watch.OnBeat(1, 1, At(milliseconds(1500)));
  EXPECT_TRUE(watch.NearlyOverdue(At(milliseconds(9'999))).empty());
  const auto nearly = watch.NearlyOverdue(At(milliseconds(10'000)));
  ASSERT_EQ(nearly.size(), 1u) << "2 is not watched";
  EXPECT_EQ(nearly[0],
            (Silence{.rank = 0, .silent = seconds(9), .before_first_sign = false, .last_step = 1}));
  Overdue(watch, seconds(11));
  EXPECT_EQ(watch.NearlyOverdue(At(seconds(11))).size(), 1u) << "0 was told";
}

TEST_F(HangWatchTest, ANewSilenceIsToldAgain) {
  HangWatch watch = WatchFor10S({0});
  watch.OnBeat(0, std::nullopt, At(seconds(1)));
  EXPECT_EQ(Overdue(watch, seconds(11)), "0 after 10000");
  watch.OnBeat(0, std::nullopt, At(seconds(20)));
  EXPECT_EQ(Overdue(watch, seconds(30)), "0 after 10000");
}

TEST_F(HangWatchTest, TheFirstBeatHasATimeOfItsOwn) {
  HangWatch watch({.timeout = seconds(10), .first_beat_timeout = seconds(60)});
  watch.Start({0, 1}, At(seconds(0)));
  EXPECT_EQ(watch.NextDeadline(), At(seconds(60)));
  watch.OnBeat(0, std::nullopt, At(seconds(55)));
  EXPECT_EQ(Overdue(watch, seconds(60)), "1 after 60000 from the start");
  EXPECT_EQ(watch.NextDeadline(), At(seconds(65)));
  EXPECT_TRUE(watch.had_beat(0));
  EXPECT_FALSE(watch.had_beat(1));
  EXPECT_EQ(watch.last_sign(0), At(seconds(55)));
  EXPECT_EQ(watch.last_sign(1), At(seconds(0))) << "its start";
  EXPECT_EQ(watch.last_sign(2), std::nullopt);
}

TEST_F(HangWatchTest, AProgramThatNeverBeatsIsLeftAlone) {
  HangWatch watch = WatchFor10S({0});
  EXPECT_EQ(Overdue(watch, seconds(100'000)), "");
}

TEST_F(HangWatchTest, OutputCountsWhereItIsAskedFor) {
  HangWatch watch = WatchFor10S({0}, /*output_counts=*/true);
  watch.OnOutput(0, At(seconds(5)));
  watch.OnBeat(0, 3, At(seconds(7)));
  watch.OnOutput(0, At(seconds(6)));
  EXPECT_EQ(watch.NextDeadline(), At(seconds(17))) << "older output takes nothing back";
  EXPECT_EQ(Overdue(watch, seconds(17)), "0 after 10000 at step 3");
  watch.OnOutput(0, At(seconds(6)));
  EXPECT_EQ(watch.NextDeadline(), std::nullopt) << "known output is no new sign of life";
}

TEST_F(HangWatchTest, OutputDoesNotCountWhereItIsNot) {
  HangWatch watch = WatchFor10S({0});
  watch.OnBeat(0, std::nullopt, At(seconds(1)));
  watch.OnOutput(0, At(seconds(9)));
  EXPECT_EQ(Overdue(watch, seconds(11)), "0 after 10000");
}

TEST_F(HangWatchTest, OutputIsNoBeat) {
  HangWatch watch = WatchFor10S({0}, /*output_counts=*/true);
  watch.OnOutput(0, At(seconds(1)));
  EXPECT_FALSE(watch.had_beat(0));
}

TEST_F(HangWatchTest, WhoHasExitedIsNotLate) {
  HangWatch watch = WatchFor10S({0});
  watch.OnBeat(0, std::nullopt, At(seconds(1)));
  watch.OnExited(0);
  EXPECT_EQ(watch.NextDeadline(), std::nullopt);
  watch.OnBeat(0, std::nullopt, At(seconds(2)));
  EXPECT_EQ(Overdue(watch, seconds(12)), "") << "a beat that was still on its way";
}

TEST_F(HangWatchTest, BeatsOfRanksElsewhereCountForNothing) {
  HangWatch watch = WatchFor10S({4, 5});
  watch.OnBeat(0, std::nullopt, At(seconds(1)));
  EXPECT_EQ(watch.NextDeadline(), std::nullopt);
  EXPECT_FALSE(watch.had_beat(0));
}

TEST_F(HangWatchTest, ARoundKnowsNothingOfTheOneBefore) {
  HangWatch watch = WatchFor10S({0});
  watch.OnBeat(0, 9, At(seconds(1)));
  watch.Start({0}, At(seconds(5)));
  EXPECT_EQ(watch.NextDeadline(), std::nullopt);
  EXPECT_FALSE(watch.had_beat(0));
}

TEST_F(HangWatchTest, AHaltOfThisProcessIsNobodysSilence) {
  HangWatch watch = WatchFor10S({0, 1});
  watch.OnBeat(0, 1, At(seconds(1)));
  watch.OnBeat(1, 1, At(seconds(2)));
  // The machine was suspended.
  EXPECT_EQ(Overdue(watch, milliseconds(11'251)), "");
  EXPECT_EQ(watch.NextDeadline(), At(milliseconds(21'251)));
  EXPECT_EQ(Overdue(watch, milliseconds(21'251)),
            "0 after 10000 at step 1, 1 after 10000 at step 1");
}

TEST_F(HangWatchTest, ALoopThatIsALittleLateIsNoHalt) {
  HangWatch watch = WatchFor10S({0});
  watch.OnBeat(0, std::nullopt, At(seconds(1)));
  EXPECT_EQ(Overdue(watch, milliseconds(11'250)), "0 after 10250");
}

TEST_F(HangWatchTest, SaysItInAPhrase) {
  EXPECT_EQ(Describe({.rank = 3, .silent = seconds(60), .last_step = 1200}),
            "gave no sign of life for 60 s (last step 1200)");
  EXPECT_EQ(Describe({.rank = 3, .silent = milliseconds(1540)}), "gave no sign of life for 1.5 s");
  EXPECT_EQ(Describe({.rank = 3, .silent = seconds(600), .before_first_sign = true}),
            "gave no sign of life for 600 s from its start on");
}

}  // namespace
}  // namespace muster::worker
