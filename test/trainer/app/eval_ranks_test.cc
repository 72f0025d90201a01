// Ranks of eval that cannot measure together exit together, with the reason on each of them.
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

using Arguments = std::vector<std::string>;

class EvalRanksTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<test::TempDir>();
    for (const char* name : {"text", "long", "short"}) {
      std::ofstream file(dir_->Path(name));
      for (int i = name[0] == 's' ? 100 : 0; i < 300; ++i) file << "a line of text\n";
    }
    TrainOk({"--model", "gpt", "--data", dir_->Path("text"), "--layers", "1", "--heads", "1",
             "--width", "8", "--context", "16", "--max-steps", "1", "--no-eval", "--checkpoint-dir",
             dir_->Path("gpt")});
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static Arguments Eval(const Arguments& more) {
    Arguments arguments =
        test::Joined({"eval", "--checkpoint", dir_->Path("gpt"), "--comm", "gloo"}, more);
    return MusterTrainWith(arguments);
  }

  static inline std::unique_ptr<test::TempDir> dir_;
};

// Two ranks measured different things, and the printed result was neither.
TEST_F(EvalRanksTest, AnotherFlagOnOneRankEndsAllWithTheSameSentence) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--dtype", "float64"}, "rank 1 has --dtype float64, and rank 0 has float32"},
      {{"--bf16"}, "rank 1 has --bf16 true, and rank 0 has false"},
      {{"--test-data", dir_->Path("short")}, "rank 1's test set has "},
  };
  for (const auto& [more, sentence] : cases) {
    Arguments other = test::Joined({"--test-data", dir_->Path("long")}, more);
    Ranks ranks({Eval({"--test-data", dir_->Path("long")}), Eval(other)});
    EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << ranks.errors();
    EXPECT_EQ(ranks[0].out(), "");
    for (const int rank : {0, 1}) {
      const std::string begin = "muster-train: rank " + std::to_string(rank) + ": " + sentence;
      EXPECT_EQ(ranks[rank].err().rfind(begin, 0), 0u) << ranks[rank].err();
    }
  }
}

// The others reported that a rank was gone, but not why.
TEST_F(EvalRanksTest, DataThatOneRankLacksAreNamedByAll) {
  Ranks ranks({Eval({}), Eval({"--data", "/no/such/text"})});
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{2, 2})) << ranks.errors();
  EXPECT_EQ(ranks[0].err().rfind("muster-train: rank 0: on rank 1: ", 0), 0u) << ranks[0].err();
  for (const int rank : {0, 1}) {
    EXPECT_NE(ranks[rank].err().find("/no/such/text"), std::string::npos) << ranks[rank].err();
  }
}

}  // namespace
}  // namespace muster::trainer
