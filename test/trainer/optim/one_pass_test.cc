// Compares the kernels with the same arithmetic written out for each element.
#include "trainer/optim/one_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace muster::trainer {
namespace {

// Neither a multiple of what a vector register holds nor less than it.
constexpr std::size_t kCount = 1003;

template <typename T>
std::vector<T> Numbers(double seed) {
  std::vector<T> numbers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    numbers[i] = static_cast<T>(std::sin(seed + static_cast<double>(i)));
  }
  return numbers;
}

template <typename T>
class OnePassTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(OnePassTest, Types);

TYPED_TEST(OnePassTest, SgdMovesEachNumberByItself) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-15;
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      for (const bool first : {false, true}) {
        for (const double decay : {0.0, 0.1}) {
          const SgdStep step{.lr = 0.5,
                             .weight_decay = decay,
                             .momentum = momentum,
                             .nesterov = nesterov,
                             .first = first};
          const std::vector<T> before = Numbers<T>(1);
          const std::vector<T> gradients = Numbers<T>(2);
          const std::vector<T> momenta_before = Numbers<T>(3);
          std::vector<T> after = before;
          std::vector<T> momenta = momenta_before;
          SgdOnePass<T>(step, kCount, after.data(), gradients.data(),
                        momentum != 0 ? momenta.data() : nullptr);
          for (std::size_t i = 0; i < kCount; ++i) {
            double direction = gradients[i] + decay * before[i];
            if (momentum != 0) {
              const double moved = first ? direction : momentum * momenta_before[i] + direction;
              ASSERT_NEAR(momenta[i], moved, tolerance);
              direction = nesterov ? direction + momentum * moved : moved;
            }
            ASSERT_NEAR(after[i], before[i] - 0.5 * direction, tolerance);
          }
        }
      }
    }
  }
}

TYPED_TEST(OnePassTest, AdamWMovesEachNumberByItself) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
  const AdamWStep step{.lr = 0.01, .weight_decay = 0.1, .number = 3};
  const std::vector<T> before = Numbers<T>(1);
  const std::vector<T> gradients = Numbers<T>(2);
  const std::vector<T> means_before = Numbers<T>(3);
  std::vector<T> squares_before = Numbers<T>(4);
  for (T& square : squares_before) square *= square;
  std::vector<T> after = before;
  std::vector<T> means = means_before;
  std::vector<T> squares = squares_before;
  AdamWOnePass<T>(step, kCount, after.data(), gradients.data(), means.data(), squares.data());
  for (std::size_t i = 0; i < kCount; ++i) {
    const double g = gradients[i];
    const double mean = 0.9 * means_before[i] + 0.1 * g;
    const double square = 0.999 * squares_before[i] + 0.001 * g * g;
    ASSERT_NEAR(means[i], mean, tolerance);
    ASSERT_NEAR(squares[i], square, tolerance);
    const double unbiased_mean = mean / (1 - std::pow(0.9, 3));
    const double unbiased_square = square / (1 - std::pow(0.999, 3));
    const double decayed = before[i] * (1 - 0.01 * 0.1);
    ASSERT_NEAR(after[i], decayed - 0.01 * unbiased_mean / (std::sqrt(unbiased_square) + 1e-8),
                tolerance);
  }
}

TYPED_TEST(OnePassTest, PartsGiveWhatTheWholeGives) {
  using T = TypeParam;
  const std::vector<T> gradients = Numbers<T>(2);
  std::vector<T> whole = Numbers<T>(1);
  std::vector<T> parts = whole;
  std::vector<T> whole_means(kCount), whole_squares(kCount);
  std::vector<T> part_means(kCount), part_squares(kCount);
  const AdamWStep step{.lr = 0.01, .weight_decay = 0.1};
  AdamWOnePass<T>(step, kCount, whole.data(), gradients.data(), whole_means.data(),
                  whole_squares.data());
  for (std::size_t begin = 0; begin < kCount; begin += 77) {
    const std::size_t count = std::min<std::size_t>(77, kCount - begin);
    AdamWOnePass<T>(step, static_cast<std::int64_t>(count), parts.data() + begin,
                    gradients.data() + begin, part_means.data() + begin,
                    part_squares.data() + begin);
  }
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(part_squares, whole_squares);
}

TYPED_TEST(OnePassTest, NothingIsTouchedWhenThereIsNothing) {
  using T = TypeParam;
  SgdOnePass<T>({.lr = 1, .momentum = 0.9}, 0, nullptr, nullptr, nullptr);
  AdamWOnePass<T>({.lr = 1}, 0, nullptr, nullptr, nullptr, nullptr);
}

TYPED_TEST(OnePassTest, AverageFollowsEachNumberByItself) {
  using T = TypeParam;
  const std::vector<T> parameters = Numbers<T>(1);
  const std::vector<T> before = Numbers<T>(2);
  std::vector<T> averages = before;
  EmaOnePass(0.75, kCount, parameters.data(), averages.data());
  for (std::size_t i = 0; i < kCount; ++i) {
    const double expected =
        0.75 * static_cast<double>(before[i]) + 0.25 * static_cast<double>(parameters[i]);
    EXPECT_NEAR(static_cast<double>(averages[i]), expected, sizeof(T) == 4 ? 1e-6 : 1e-15);
  }
}

TYPED_TEST(OnePassTest, FiniteIsWhatIsNeitherNanNorInfinite) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers = Numbers<T>(1);
  for (const T extreme :
       {Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(), T{}}) {
    numbers[kCount / 2] = extreme;
    EXPECT_TRUE(FiniteOnePass(kCount, numbers.data())) << extreme;
  }
  for (const T bad :
       {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::signaling_NaN()}) {
    for (const std::size_t place : {std::size_t{0}, kCount / 2, kCount - 1}) {
      std::vector<T> broken = numbers;
      broken[place] = bad;
      EXPECT_FALSE(FiniteOnePass(kCount, broken.data())) << bad << " at " << place;
    }
  }
  EXPECT_TRUE(FiniteOnePass<T>(0, nullptr));
}

}  // namespace
}  // namespace muster::trainer
