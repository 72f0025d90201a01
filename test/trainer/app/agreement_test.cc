// Ranks that cannot train together exit together, with the reason on each of them.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

class AgreementTest : public testing::Test {
 protected:
  std::vector<std::string> Training(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = test::Joined(
        {"--dataset", "generated", "--model", "mlp", "--max-steps", "2", "--no-eval"}, more);
    return MusterTrainWith(arguments);
  }

  const test::TempDir dir_;
};

// A rank with another learning rate silently trained another model.
TEST_F(AgreementTest, AnotherOptionOnOneRankEndsAllWithTheSameSentence) {
  const std::pair<std::vector<std::vector<std::string>>, std::string> cases[] = {
      {{{}, {"--lr", "0.5"}, {}}, "rank 1 has --lr 0.5, and rank 0 has 0.02"},
      {{{}, {}, {"--checkpoint-dir", dir_.Path("ckpt")}},
       "rank 2 has --checkpoint-dir, and rank 0 has none"},
      {{{}, {}, {"--no-eval", "--eval"}}, "rank 2 has --eval true, and rank 0 has false"},
  };
  for (const auto& [more, sentence] : cases) {
    std::vector<std::vector<std::string>> arguments;
    for (const std::vector<std::string>& own : more) {
      arguments.push_back(Training(own));
      arguments.back().insert(arguments.back().end(), {"--batch-size", "96"});
    }
    Ranks ranks(arguments);
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2, 2})) << ranks.errors();
    for (const int rank : {0, 1, 2}) {
      EXPECT_EQ(ranks[rank].err(), "muster-train: rank " + std::to_string(rank) + ": " + sentence +
                                       ": give all ranks the same options\n");
    }
  }
}

// The others waited for five minutes, and then reported that it "did not arrive".
TEST_F(AgreementTest, ARankThatIsNotFitEndsAllAtOnce) {
  const struct {
    std::size_t unfit;
    std::vector<std::string> mistake;
    std::string sentence;
  } cases[] = {
      {0, {"--bogus"}, "--bogus"},
      {2, {"--bogus"}, "--bogus"},
      {1, {"--dataset", "idx", "--data", "/no/such/dir"}, "read data from /no/such/dir: "},
      {1, {"--comm", "nccl"}, "--comm nccl: "},
      {0, {"--export", "/no/such/dir/m"}, "write /no/such/dir/m: "},
  };
  for (const auto& [unfit, mistake, sentence] : cases) {
    std::vector<std::vector<std::string>> arguments(3, Training({"--batch-size", "96"}));
    arguments[unfit].insert(arguments[unfit].end(), mistake.begin(), mistake.end());
    Ranks ranks(arguments);
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2, 2})) << ranks.errors();
    for (const std::size_t rank : {0u, 1u, 2u}) {
      std::string begin = "muster-train: rank " + std::to_string(rank) + ": ";
      if (rank != unfit) begin += "rank " + std::to_string(unfit) + " cannot take part: ";
      const std::string error = ranks[static_cast<int>(rank)].err();
      EXPECT_EQ(error.rfind(begin, 0), 0u) << error;
      EXPECT_NE(error.find(sentence), std::string::npos) << error;
      EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
    }
  }
}

TEST_F(AgreementTest, WhenNoRankIsFitEachSaysWhy) {
  Ranks ranks(Training({"--bogus"}), 3);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2, 2}));
  for (const int rank : {0, 1, 2}) {
    const std::string error = ranks[rank].err();
    EXPECT_EQ(error.find("cannot take part"), std::string::npos) << error;
    EXPECT_NE(error.find("--bogus"), std::string::npos) << error;
  }
}

// Rank 0 exited with a sentence, and the others with "another rank is gone".
TEST_F(AgreementTest, FilesThatRankZeroCannotOpenEndAllWithTheReason) {
  std::ofstream(dir_.Path("notes.txt")) << "no directory";
  Ranks ranks(Training({"--tensorboard", dir_.Path("notes.txt")}), 2);
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << ranks.errors();
  for (const int rank : {0, 1}) {
    EXPECT_NE(ranks[rank].err().find("notes.txt"), std::string::npos) << ranks[rank].err();
  }
}

TEST_F(AgreementTest, WhatIsARanksOwnMayDiffer) {
  Ranks ranks({Training({"--loss-log", dir_.Path("loss")}),
               Training({"--threads", "1", "--timeout", "99", "--trace-steps", "3"})});
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{0, 0})) << ranks.errors();
}

}  // namespace
}  // namespace muster::trainer
