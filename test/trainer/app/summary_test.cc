#include "trainer/app/training/reports.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// The line of `summary` that begins with `name`; empty when there is none.
std::string Line(const Summary& summary, const std::string& name) {
  const std::string text = FormatSummary(summary);
  const std::size_t at = text.find(name);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(SummaryTest, OfTextTheSpeedIsGivenInTokensToo) {
  Summary summary{.steps = 9, .unit = "windows", .samples_per_second = 250};
  summary.tokens_per_second = 32000;
  EXPECT_EQ(Line(summary, "speed"), "speed          250 windows/s, 32000 tokens/s");
  summary = {.steps = 9, .samples_per_second = 250};
  EXPECT_EQ(Line(summary, "speed"), "speed          250 images/s");
}

TEST(SummaryTest, ArithmeticIsBesideThePeakWhereThatIsKnown) {
  Summary summary{.steps = 9, .flops_per_sample = 12.5e6, .flops_per_second = 395.8e12};
  EXPECT_EQ(Line(summary, "arithmetic"),
            "arithmetic     12.5 MFLOP for a sample, 396 TFLOP/s of a rank");
  summary.peak_flops = 989.5e12;
  summary.peak_of = "bfloat16 or float16 of an NVIDIA H100";
  EXPECT_EQ(Line(summary, "arithmetic"),
            "arithmetic     12.5 MFLOP for a sample, 396 TFLOP/s of a rank: 40.0 % of the peak in "
            "bfloat16 or float16 of an NVIDIA H100");
  EXPECT_EQ(Line({}, "arithmetic"), "");
}

TEST(SummaryTest, MemoryIsThatOfOneRank) {
  Summary summary{.peak_memory_bytes = 412'300'000};
  EXPECT_EQ(Line(summary, "peak"), "peak memory    412 MB");
  summary.world_size = 2;
  EXPECT_EQ(Line(summary, "peak"), "peak memory    412 MB (rank 0)");
  summary.peak_gpu_bytes = 2'000'000'000;
  EXPECT_EQ(Line(summary, "peak"), "peak memory    412 MB, and 2000 MB on the GPU (rank 0)");
  EXPECT_EQ(Line({}, "peak"), "") << "where nobody knows it";
}

}  // namespace
}  // namespace muster::trainer
