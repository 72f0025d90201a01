#include "trainer/app/compare.h"

#include <limits>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(CompareTest, EachMethodIsALineAgainstTheFirst) {
  const MethodResult single = {.name = "single",
                               .samples_per_second = 1000,
                               .state_bytes = 8.1e6,
                               .state_formula = 8e6,
                               .bubble = kNone,
                               .bubble_theory = kNone,
                               .train_loss = 0.5,
                               .test_loss = 0.6,
                               .test_accuracy = 0.9};
  MethodResult pipeline = single;
  pipeline.name = "pp";
  pipeline.samples_per_second = 1900;
  pipeline.counted_bytes = 2e6;
  pipeline.formula_bytes = 2.5e6;
  pipeline.bubble = 0.25;
  pipeline.bubble_theory = 0.2;
  pipeline.test_loss = pipeline.test_accuracy = kNone;
  MethodResult average = pipeline;
  average.name = "average";
  average.samples_per_second = 500;
  average.counted_bytes = average.state_bytes = average.state_formula = kNone;
  average.bubble = average.bubble_theory = kNone;
  const std::string table = FormatComparison({single, pipeline, average});
  EXPECT_NE(table.find("\nsingle          1000     1.00        0.000        0.000     8.100     "
                       "8.000       -       -     0.5000    0.6000   90.00 %\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("\npp              1900     1.90        2.000        2.500     8.100     "
                       "8.000  25.0 %  20.0 %     0.5000         -         -\n"),
            std::string::npos)
      << table;
  // With Gloo the formula's value was repeated as if it had been counted.
  EXPECT_NE(table.find("\naverage          500     0.50            -        2.500         -        "
                       " -       -       -     0.5000         -         -\n"),
            std::string::npos)
      << table;
}

TEST(CompareTest, WhatIsSentStandsBesideTheFormulasOverRanks) {
  const MethodResult ddp = {.samples_per_second = 100, .counted_bytes = 1.5e6, .model_bytes = 1e6};
  const MethodResult threads = {.samples_per_second = 50, .counted_bytes = 6e6};
  const std::string table = FormatScaling({{4, ddp, threads}});
  EXPECT_NE(table.find("    4           100      1.500       1.500                50      6.000    "
                       "   6.000\n"),
            std::string::npos)
      << table;
}

}  // namespace
}  // namespace muster::trainer
