// A program with a model of its own, from outside: what it says when its recipe or its user makes a
// mistake, alone and as ranks.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/app/ranks.h"

namespace muster::trainer {
namespace {

using Arguments = std::vector<std::string>;

Arguments Own(const Arguments& more) {
  Arguments arguments = {"test/trainer/app/own_program"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Arguments Training(const Arguments& more = {}) {
  Arguments arguments = Own({"--batch-size", "16", "--max-steps", "2", "--comm", "gloo"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

class OwnProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<test::TempDir>();
    Ranks ranks(Training({"--units", "3", "--checkpoint-dir", dir_->Path("run")}), 1);
    EXPECT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static Arguments Eval(const Arguments& more = {}) {
    Arguments arguments = Own({"eval", "--checkpoint", dir_->Path("run"), "--comm", "gloo"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static inline std::unique_ptr<test::TempDir> dir_;
};

// "The model was made with --units=3, and --units=1 was given": the empty --note took --units=3 for
// its value.
TEST_F(OwnProgramTest, EvalTakesAnEmptyTextFromTheCheckpoint) {
  Ranks ranks(Eval(), 1);
  EXPECT_EQ(ranks.Wait(), std::vector<int>{0}) << ranks.errors();
}

}  // namespace
}  // namespace muster::trainer
