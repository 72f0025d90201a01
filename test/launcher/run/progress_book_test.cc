// What of many beats the rendezvous is told.
#include "launcher/run/round_evidence.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using rendezvous::Progress;
using rendezvous::RankProgress;
using rendezvous::TimePoint;
using std::chrono::milliseconds;

constexpr rendezvous::RoundId kProgressBookRound{.incarnation = 5, .number = 2};

TimePoint ProgressBookAt(int ms) {
  return TimePoint{} + milliseconds(ms);
}

worker::Beat Step(int rank, std::int64_t step, double data, double wait = 0) {
  return {.rank = rank, .step = step, .phases = {{"data", data}, {"wait", wait}}};
}

// A node with ranks 4 and 5.
ProgressBook TwoRanks() {
  ProgressBook book;
  book.Begin(kProgressBookRound, 4, 2);
  return book;
}

TEST(ProgressBookTest, TellsThatOfWhichThereIsNews) {
  ProgressBook book = TwoRanks();
  EXPECT_TRUE(book.Take(/*all=*/true, ProgressBookAt(0)).ranks.empty());
  EXPECT_TRUE(book.OnBeat({.rank = 5, .step = 10, .loss = 2.5, .samples_per_second = 64},
                          ProgressBookAt(100)));
  const Progress told = book.Take(/*all=*/false, ProgressBookAt(350));
  EXPECT_EQ(told, (Progress{.round = kProgressBookRound,
                            .ranks = {{.local_rank = 1,
                                       .step = 10,
                                       .ago = milliseconds(250),
                                       .loss = 2.5,
                                       .samples_per_second = 64}}}));
  EXPECT_TRUE(book.Take(/*all=*/false, ProgressBookAt(400)).ranks.empty());
  EXPECT_EQ(book.Take(/*all=*/true, ProgressBookAt(400)).ranks.size(), 1u)
      << "as after a lost connection";
}

TEST(ProgressBookTest, RankThatIsNotOursChangesNothing) {
  ProgressBook book = TwoRanks();
  for (const int rank : {0, 3, 6, -1, 2'147'483'647}) {
    EXPECT_FALSE(book.OnBeat({.rank = rank, .step = 1}, ProgressBookAt(0))) << rank;
  }
  EXPECT_TRUE(book.Take(/*all=*/true, ProgressBookAt(0)).ranks.empty());
  book.Clear();
  EXPECT_FALSE(book.OnBeat({.rank = 4, .step = 1}, ProgressBookAt(0))) << "no workers";
}

TEST(ProgressBookTest, OneSlowStepDoesNotShow) {
  ProgressBook book = TwoRanks();
  int at = 0;
  for (int step = 1; step <= 20; ++step) {
    const bool slow = step == 18;
    at += slow ? 5000 : 100;
    book.OnBeat(Step(4, step, slow ? 4.9 : 0.02, 0.08), ProgressBookAt(at));
  }
  const RankProgress told = book.Take(/*all=*/false, ProgressBookAt(at)).ranks.at(0);
  EXPECT_EQ(told.step, 20);
  EXPECT_EQ(told.timed_steps, 20);
  EXPECT_DOUBLE_EQ(told.step_seconds.value(), 0.1);
  EXPECT_EQ(told.phases,
            (std::vector<rendezvous::PhaseTime>{{"data", 0.02}, {"wait", 0.08, true}}));
  EXPECT_EQ(OwnSeconds(told), 0.02);
}

TEST(ProgressBookTest, BeatsOfSeveralStepsAreDividedAndThoseOfNoneDoNotCount) {
  ProgressBook book = TwoRanks();
  book.OnBeat({.rank = 4, .step = 10}, ProgressBookAt(0));
  book.OnBeat({.rank = 4, .step = 20}, ProgressBookAt(1000));
  book.OnBeat({.rank = 4, .step = 20}, ProgressBookAt(5000));
  book.OnBeat({.rank = 4}, ProgressBookAt(6000));
  const RankProgress told = book.Take(/*all=*/false, ProgressBookAt(6000)).ranks.at(0);
  EXPECT_DOUBLE_EQ(told.step_seconds.value(), 0.1);
  EXPECT_EQ(told.step, 20);
  EXPECT_EQ(told.ago, milliseconds(0));
  EXPECT_EQ(told.timed_steps, 0);
  EXPECT_EQ(OwnSeconds(told), std::nullopt);
}

// After a restart the page showed the step of before, and a loss that nobody had any more.
TEST(ProgressBookTest, NextRoundKnowsNothingOfTheOneBefore) {
  ProgressBook book = TwoRanks();
  book.OnBeat(Step(4, 7, 0.1), ProgressBookAt(0));
  book.Begin({.incarnation = 5, .number = 3}, 0, 1);
  EXPECT_TRUE(book.Take(/*all=*/true, ProgressBookAt(0)).ranks.empty());
  EXPECT_FALSE(book.OnBeat(Step(4, 8, 0.1), ProgressBookAt(0)));
  EXPECT_TRUE(book.OnBeat(Step(0, 1, 0.1), ProgressBookAt(0)));
  EXPECT_EQ(book.Take(/*all=*/false, ProgressBookAt(0)).round.number, 3);
}

// A rank that was stopped was shown nowhere but on its agent's terminal.
TEST(ProgressBookTest, WhatIsWrongWithARankIsToldUntilItIsWithdrawn) {
  using rendezvous::RankAlertKind;
  ProgressBook book = TwoRanks();
  EXPECT_EQ(book.Take(/*all=*/true, ProgressBookAt(0)).alerts, std::nullopt)
      << "nothing ever was wrong";
  EXPECT_FALSE(book.SetRankAlert(6, RankAlertKind::kStopped, "was stopped", ProgressBookAt(0)))
      << "not ours";
  EXPECT_FALSE(book.EndRankAlert(5, RankAlertKind::kStopped));
  EXPECT_TRUE(book.SetRankAlert(5, RankAlertKind::kStopped, "was stopped", ProgressBookAt(100)));
  EXPECT_FALSE(
      book.SetRankAlert(5, RankAlertKind::kStopped, "was stopped again", ProgressBookAt(200)));
  EXPECT_TRUE(book.SetRankAlert(5, RankAlertKind::kSilent, "gave no sign", ProgressBookAt(250)));
  const std::vector<rendezvous::RankAlert> both = {{.local_rank = 1,
                                                    .kind = RankAlertKind::kStopped,
                                                    .what = "was stopped",
                                                    .ago = milliseconds(200)},
                                                   {.local_rank = 1,
                                                    .kind = RankAlertKind::kSilent,
                                                    .what = "gave no sign",
                                                    .ago = milliseconds(50)}};
  EXPECT_EQ(book.Take(/*all=*/false, ProgressBookAt(300)).alerts, both);
  EXPECT_EQ(book.Take(/*all=*/false, ProgressBookAt(300)).alerts, std::nullopt) << "it is known";
  EXPECT_EQ(book.Take(/*all=*/true, ProgressBookAt(300)).alerts, both)
      << "as after a lost connection";
  EXPECT_TRUE(book.EndRankAlert(5, RankAlertKind::kStopped));
  EXPECT_TRUE(book.EndRankAlert(5, RankAlertKind::kSilent));
  const auto none = book.Take(/*all=*/false, ProgressBookAt(400)).alerts;
  ASSERT_TRUE(none.has_value()) << "that it is over is news, too";
  EXPECT_TRUE(none->empty());
  EXPECT_TRUE(book.Take(/*all=*/true, ProgressBookAt(400)).alerts.has_value())
      << "the connection may have broken before it was heard";
  book.SetRankAlert(4, RankAlertKind::kStopped, "was stopped", ProgressBookAt(500));
  book.Begin({.incarnation = 5, .number = 3}, 4, 2);
  EXPECT_EQ(book.Take(/*all=*/true, ProgressBookAt(600)).alerts, std::nullopt)
      << "its round is over";
}

TEST(ProgressBookTest, OfManyRanksTheFirstAreTold) {
  ProgressBook book;
  book.Begin(kProgressBookRound, 0, 100'000);
  for (int rank = 0; rank < 1000; ++rank) book.OnBeat(Step(rank, 1, 0.1), ProgressBookAt(0));
  EXPECT_EQ(book.Take(/*all=*/false, ProgressBookAt(0)).ranks.size(), 256u);
}

}  // namespace
}  // namespace muster::launcher
