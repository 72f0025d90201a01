#include "trainer/app/training/resume.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using Ranks = std::vector<int>;

constexpr char kOld[] = "1700000000000000-aaaaaaaa vision";
constexpr char kOther[] = "1800000000000000-bbbbbbbb speech";
constexpr char kThis[] = "1790000000000000-cccccccc vision";

constexpr ResumeRequest kFirstStart = {true, false, "vision"};
constexpr ResumeRequest kRestart = {true, true, "vision"};
constexpr ResumeRequest kRestartOfAsked = {false, true, "vision"};

DirectoryReport Saved(int rank, const std::string& job, std::int64_t step) {
  return {rank, job, step, step};
}

// A directory that `job` has taken over, with its earlier contents.
DirectoryReport TakenOver(int rank, const std::string& job, std::optional<std::int64_t> step) {
  return {rank, job, std::nullopt, step};
}

TEST(ResumeChoiceTest, NothingIsChosenWhereNothingIs) {
  for (const ResumeRequest& request : {kFirstStart, kRestart, kRestartOfAsked}) {
    EXPECT_EQ(ChooseCheckpoint({}, request).rank, std::nullopt);
    EXPECT_EQ(ChooseCheckpoint({{0, "", std::nullopt, std::nullopt}}, request).rank, std::nullopt);
  }
}

TEST(ResumeChoiceTest, TheNewestOfOneJobWins) {
  const ResumeChoice choice = ChooseCheckpoint(
      {Saved(0, kThis, 100), Saved(2, kThis, 120), Saved(4, kThis, 120)}, kRestart);
  EXPECT_EQ(choice.job, kThis);
  EXPECT_EQ(choice.rank, 2);
  EXPECT_EQ(choice.step, 120);
  EXPECT_EQ(choice.holders, Ranks({2, 4}));
  EXPECT_EQ(choice.passed_over, Ranks());
}

// The node of rank 0 is lost, and a new one with an empty directory replaces it.
TEST(ResumeChoiceTest, ANewNodeWithoutACheckpointIsGivenOne) {
  const ResumeChoice choice =
      ChooseCheckpoint({{0, "", std::nullopt, std::nullopt}, Saved(1, kThis, 120)}, kRestart);
  EXPECT_EQ(choice.rank, 1);
  EXPECT_EQ(choice.holders, Ranks({1}));
}

TEST(ResumeChoiceTest, WhatANewNodeHasLeftFromAnotherJobIsNotTaken) {
  for (const std::string job : {"", kOld, kOther}) {
    const std::vector<DirectoryReport> reports = {Saved(0, job, 5000), Saved(1, kThis, 120)};
    EXPECT_EQ(ChooseCheckpoint(reports, kRestart).rank, 1) << job;
    EXPECT_EQ(ChooseCheckpoint(reports, kRestart).job, kThis) << job;
  }
  // The same if this job has saved nothing yet.
  EXPECT_EQ(
      ChooseCheckpoint({Saved(0, kOld, 5000), TakenOver(1, kThis, std::nullopt)}, kRestart).rank,
      std::nullopt);
}

TEST(ResumeChoiceTest, AFirstStartTakesTheJobThatCameLastAndSaysWhatItPassesOver) {
  const ResumeChoice choice =
      ChooseCheckpoint({Saved(0, kOld, 5000), Saved(1, kThis, 120), Saved(2, "", 7)}, kFirstStart);
  EXPECT_EQ(choice.job, "") << "this job has no name yet";
  EXPECT_EQ(choice.rank, 1);
  EXPECT_EQ(choice.passed_over, Ranks({0}));
}

// A job that was to start from scratch ended before it saved anything; the next one must resume.
TEST(ResumeChoiceTest, AJobThatHasSavedNothingHidesNothingFromTheNextOne) {
  const std::vector<DirectoryReport> reports = {TakenOver(0, kThis, 200), Saved(1, kOld, 300)};
  EXPECT_EQ(ChooseCheckpoint(reports, kFirstStart).rank, 1);
  EXPECT_EQ(ChooseCheckpoint({TakenOver(0, kThis, 200)}, kFirstStart).rank, 0);
  EXPECT_EQ(ChooseCheckpoint(reports, kRestart).rank, std::nullopt) << "it starts afresh again";
}

TEST(ResumeChoiceTest, AJobThatWasToldWhereToStartGoesOnFromWhatItHasSaved) {
  EXPECT_EQ(ChooseCheckpoint({TakenOver(0, kThis, 200)}, kRestartOfAsked).rank, std::nullopt);
  EXPECT_EQ(ChooseCheckpoint({Saved(0, kThis, 20)}, kRestartOfAsked).rank, 0);
  EXPECT_EQ(ChooseCheckpoint({Saved(0, kOther, 20)}, kRestartOfAsked).rank, std::nullopt);
  // Its own checkpoint is damaged: the complete one before it may be older than the job.
  EXPECT_EQ(ChooseCheckpoint({{0, kThis, 20, 10}}, kRestartOfAsked).rank, std::nullopt);
  EXPECT_EQ(ChooseCheckpoint({{0, kThis, 20, 10}}, kRestart).rank, 0);
}

TEST(ResumeChoiceTest, ARestartThatNoDirectoryKnowsTakesOnlyWhatBelongsToNobody) {
  EXPECT_EQ(ChooseCheckpoint({Saved(0, kOther, 20)}, kRestart).rank, std::nullopt);
  EXPECT_EQ(ChooseCheckpoint({Saved(0, "", 20)}, kRestart).rank, 0);
  EXPECT_EQ(ChooseCheckpoint({Saved(0, "", 20)}, kRestartOfAsked).rank, std::nullopt);
}

}  // namespace
}  // namespace muster::trainer
