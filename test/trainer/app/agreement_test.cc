// Ranks that cannot train together end together, with the reason on each of them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/app/ranks.h"

namespace muster::trainer {
namespace {

class AgreementTest : public testing::Test {
 protected:
  std::vector<std::string> Training(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"--dataset",   "generated", "--model",  "mlp",
                                          "--max-steps", "2",         "--no-eval"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return MusterTrainWith(arguments);
  }

  const test::TempDir dir_;
};

// One rank that had another learning rate trained another model, and nothing said so.
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

TEST_F(AgreementTest, WhatIsARanksOwnMayDiffer) {
  Ranks ranks({Training({"--loss-log", dir_.Path("loss")}),
               Training({"--threads", "1", "--timeout", "99", "--trace-steps", "3"})});
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{0, 0})) << ranks.errors();
}

}  // namespace
}  // namespace muster::trainer
