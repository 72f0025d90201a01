// A step never waits for a result of its rank's device, which would idle meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

// How many numbers rank 0 of `ranks` reads in a training with `flags`.
int Reads(const std::string& flags, int ranks) {
  std::vector<std::string> arguments = {"test/trainer/app/training/reading_program",
                                        "--dataset=generated", "--comm=gloo", "--batch-size=60",
                                        // With "stop", the default, the CPU checks each loss.
                                        "--on-nonfinite=ignore"};
  for (const absl::string_view flag : absl::StrSplit(flags, ' ', absl::SkipEmpty())) {
    arguments.emplace_back(flag);
  }
  Ranks running(arguments, ranks);
  EXPECT_EQ(running.Wait(), std::vector<int>(static_cast<std::size_t>(ranks), 0))
      << running.errors();
  const std::string words = running[0].err();
  const std::size_t at = words.rfind("read ");
  EXPECT_NE(at, std::string::npos) << words;
  return at == std::string::npos ? -1 : std::stoi(words.substr(at + 5));
}

struct Case {
  int ranks;
  const char* flags;
  const char* less = "--epochs 1";
  const char* more = "--epochs 3";
};

class WaitingTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    All, WaitingTest,
    testing::Values(Case{1, "--model mlp"}, Case{2, "--model cnn --clip 1 --ema 0.9"},
                    Case{2, "--model mlp --algorithm adamw --clip 0.5 --accumulate 3"},
                    Case{2, "--model mlp --parallel average"},
                    Case{2, "--model resnet18 --sync-bn --no-eval", "--max-steps 2",
                         "--max-steps 5"},
                    Case{2, "--model mlp --zero 3 --clip 1"}),
    [](const auto& info) { return std::to_string(info.index); });

// The CPU waited for the loss of each step, and for the norm of its gradient.
TEST_P(WaitingTest, MoreStepsAndTestsReadNoMoreNumbers) {
  const auto& [ranks, flags, less, more] = GetParam();
  EXPECT_EQ(Reads(absl::StrCat(flags, " ", more), ranks),
            Reads(absl::StrCat(flags, " ", less), ranks))
      << flags;
}

}  // namespace
}  // namespace muster::trainer
