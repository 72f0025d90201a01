// Compares the formulas for the bytes ranks send with the kernel's counter of a private network.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/json.h"
#include "test/support/command.h"
#include "test/support/temp_dir.h"

namespace muster::trainer {
namespace {

using Words = std::vector<std::string>;

// Packet headers, and the losses that ranks sum, come on top.
constexpr double kMostAbove = 1.03;

// The bytes rank 0 has sent in a run of `steps` steps, by formula: from the last line that has it.
double FormulaBytes(const std::string& metrics, int steps) {
  double bytes = 0;
  std::ifstream file(absl::StrCat(metrics, ".", steps));
  for (std::string line; std::getline(file, line);) {
    const base::Json values = base::ParseJson(line);
    const auto found = values.find("summary/formula_bytes_per_step");
    if (found != values.end()) bytes = found->get<double>();
  }
  return bytes * steps;
}

class KernelBytesTest : public testing::TestWithParam<const char*> {};

TEST_P(KernelBytesTest, AreThoseOfTheFormula) {
  test::Command possible({"unshare", "--map-root-user", "--net", "ip", "link", "set", "lo", "up"});
  if (possible.Wait() != 0) {
    GTEST_SKIP() << "this machine does not let us make network namespaces (unshare --net)";
  }
  constexpr int kRanks = 2;
  const test::TempDir dir;
  const std::string metrics = dir.Path("metrics.jsonl");
  Words words = {"unshare", "--map-root-user",
                 "--net",   "test/trainer/app/strategies/kernel_bytes.sh",
                 "2",       metrics};
  for (const absl::string_view word : absl::StrSplit(
           absl::StrCat("--dataset generated --model gpt --layers 2 --heads 4 --width 64 --context "
                        "32 --batch-size 16 --threads 1 --no-eval --algorithm adamw ",
                        GetParam()),
           ' ', absl::SkipEmpty())) {
    words.emplace_back(word);
  }
  test::Command run(words);
  ASSERT_EQ(run.Wait(std::chrono::seconds(120)), 0) << run.err();
  const double counted = std::atof(run.out().c_str());
  const double formula = kRanks * (FormulaBytes(metrics, 24) - FormulaBytes(metrics, 4));
  ASSERT_GT(formula, 1e6) << run.err();
  EXPECT_GE(counted, formula) << GetParam();
  EXPECT_LE(counted, formula * kMostAbove) << GetParam();
  RecordProperty("counted", std::to_string(counted));
  RecordProperty("formula", std::to_string(formula));
}

INSTANTIATE_TEST_SUITE_P(Ways, KernelBytesTest,
                         testing::Values("", "--zero 1", "--zero 2", "--zero 3", "--mesh tp=2",
                                         "--mesh tp=2 --sequence-parallel", "--mesh pp=2",
                                         "--mesh pp=2 --pipeline-driver rpc --micro-batches 2"));

}  // namespace
}  // namespace muster::trainer
