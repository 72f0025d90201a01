// Users' programs with mistakes in their recipes: each gets one sentence with the problem and the
// function's name, and an exit code that is not 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

using Words = std::vector<std::string>;

struct Mistake {
  std::string name;  // of the case
  int code = 2;
  std::string sentence;
};

class OwnMistakesTest : public testing::Test {
 protected:
  Words Program(const std::string& name, const Words& flags = {}) {
    return test::Joined({"test/trainer/recipe/own_program", name, "--batch-size=12"}, flags);
  }

  // Runs the cases on one rank, and expects each to fail with its sentence in one line.
  void ExpectRefused(const std::vector<Mistake>& mistakes) {
    for (const Mistake& mistake : mistakes) {
      SCOPED_TRACE(mistake.name);
      Ranks program(Program(mistake.name), 1);
      EXPECT_EQ(program.Wait(), std::vector<int>{mistake.code});
      const std::string errors = program.errors();
      EXPECT_NE(errors.find(mistake.sentence), std::string::npos) << errors;
      EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    }
  }

  const test::TempDir dir_;
};

// A user called a metric "loss", and it replaced the real loss in eval --json.
TEST_F(OwnMistakesTest, AMetricHasANameOfItsOwn) {
  ExpectRefused({{"metric-loss", 2, "read the recipe: a metric is called 'loss', as something "},
                 {"metric-samples", 2, "read the recipe: a metric is called 'samples'"},
                 {"metric-twice", 2, "read the recipe: two metrics are called 'within 0.1'"},
                 {"metric-escape", 2, "a metric's name is empty or has control characters"},
                 {"name-newline", 2, "its name is empty or has control characters"}});
}

TEST_F(OwnMistakesTest, AnyOtherNameIsOneInTheMetrics) {
  Ranks program(Program("metric-quote", {"--metrics=" + dir_.Path("m.jsonl")}), 1);
  EXPECT_EQ(program.Wait(), std::vector<int>{0}) << program.errors();
  bool found = false;
  std::ifstream metrics(dir_.Path("m.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(record.is_object()) << line;
    found |= record.is_object() && record.contains("test/a \"b\\");
  }
  EXPECT_TRUE(found);
}

// SIGSEGV, or "bad_function_call".
TEST_F(OwnMistakesTest, WhatIsMissingIsNamed) {
  ExpectRefused({{"no-data", 2, "hills has no function that opens the data (Recipe::data)"},
                 {"no-model", 2, "hills has no function that makes the model (Recipe::model)"},
                 {"no-loss", 2, "hills has no function that computes the loss (Recipe::loss)"},
                 {"metric-null", 2, "metric 'within 0.1' has no function (Metric::sum)"},
                 {"no-train", 2, "open data set hills: training data is missing"},
                 {"no-test", 2, "open data set hills: test data is missing"},
                 {"no-module", 2, "make model hills: the network has no module"},
                 {"no-stages", 2, "make model hills: the network has no stages"},
                 {"no-forward", 2, "make model hills: stage 'net' has no function"}});
}

// Losses were NaN, and the exit code 0.
TEST_F(OwnMistakesTest, DataThatIsNotWhatItSaysIsRefused) {
  ExpectRefused(
      {{"empty-train", 2, "open data set hills: training data has no samples"},
       {"empty-test", 2, "open data set hills: test data has no samples"},
       {"negative", 2, "open data set hills: training data has no samples"},
       {"more-rows", 2, "asked for 12 samples, and returned inputs: 24 rows, targets: 24"},
       {"fewer-targets", 2, "inputs: 12 rows, targets: 11 rows"},
       {"no-targets", 2, "the data set returned targets without elements"},
       {"undefined", 2, "returned inputs: none, targets: 12 rows"}});
}

// "terminate called after throwing an instance of 'int'".
TEST_F(OwnMistakesTest, WhateverIsThrownIsASentence) {
  const std::string no_exception = ": it threw something other than a std::exception";
  ExpectRefused({{"throw-data", 1, "the data function of hills" + no_exception},
                 {"throw-gather", 1, "the training data of hills" + no_exception},
                 {"throw-model", 1, "the model function of hills" + no_exception},
                 {"throw-forward", 1, "stage 'net' of hills" + no_exception},
                 {"throw-loss", 1, "the loss of hills" + no_exception},
                 {"throw-backward", 1, "something of type int was thrown"},
                 {"throw-metric", 1, "metric 'within 0.1' of hills" + no_exception},
                 {"throw-flags", 1, "the flags function of hills" + no_exception}});
}

TEST_F(OwnMistakesTest, WhoseMistakeItIsIsSaid) {
  ExpectRefused({{"misfit", 1, "stage 'net' of hills: mat1 and mat2 shapes cannot be multiplied"},
                 {"flat", 2, "to return a row for each sample, and for 12 it returned 24 rows"},
                 {"detached", 2, "what the model returns does not depend on any parameter"},
                 {"mean-loss", 2, "the loss of hills: it returned 12 numbers, and must return one"},
                 {"detached-loss", 2, "the loss of hills: it does not depend on the outputs"},
                 {"metric-shape", 2,
                  "metric 'within 0.1' of hills: it returned 3 numbers, and must return one"}});
}

TEST_F(OwnMistakesTest, UpdatesOfItsOwnAreLookedAt) {
  ExpectRefused(
      {{"rule-without-update", 2, "optimizer nothing has no function that updates a parameter"},
       {"negative-schedule", 2, "the schedule of hills: it returned -1 for step 2 of 8"},
       {"three-tensors-short", 2, "and tensor 0 of Batch::others has 2 rows"}});
}

// "bad optional access": a name that ranks use internally for something else.
TEST_F(OwnMistakesTest, AParameterMayHaveAnyName) {
  ExpectRefused(
      {{"nan-parameter", 2, "training stopped in epoch 1: step 8 made ? NaN or infinite"}});
}

// The others printed Gloo's error, after "give all ranks the same model".
TEST_F(OwnMistakesTest, ARankThatFailsIsNamedByAllOthers) {
  const Mistake mistakes[] = {
      {"throw-data-of-1", 1, "the data function of hills: no such survey"},
      {"throw-model-of-1", 1, "make the model: the model function of hills: no such network"},
      {"other-model-of-1", 2,
       "tensor 1 of the model is more of [2, 3] Float, and on rank 0 it is inner.weight of [8, 2] "
       "Float: give all ranks the same model"}};
  for (const auto& [name, code, sentence] : mistakes) {
    SCOPED_TRACE(name);
    Ranks ranks(Program(name), 3);
    EXPECT_EQ(ranks.Wait(), std::vector<int>(3, code));
    EXPECT_EQ(ranks[1].err(), "own_program: rank 1: " + sentence + "\n");
    for (const int other : {0, 2}) {
      const std::string error = ranks[other].err();
      EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
      EXPECT_NE(error.find(sentence + "\n"), std::string::npos) << error;
      EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
    }
  }
}

TEST_F(OwnMistakesTest, AProgramNeedsNoName) {
  Ranks program({"test/trainer/recipe/own_program", "plain"}, 1);
  // 96 samples make one step of the default batch.
  EXPECT_EQ(program.Wait(), std::vector<int>{0}) << program.errors();
  EXPECT_NE(program[0].out().find("hills: hills on data of its own"), std::string::npos)
      << program[0].out();
}

}  // namespace
}  // namespace muster::trainer
