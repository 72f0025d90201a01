#include "trainer/data/samples/sample_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::trainer {
namespace {

std::vector<std::int64_t> First(const KeyedPermutation& order, std::int64_t count) {
  std::vector<std::int64_t> first;
  for (std::int64_t place = 0; place < count; ++place) first.push_back(order.At(place));
  return first;
}

TEST(KeyedPermutationTest, EachNumberHasOnePlace) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 127, 128, 129, 1000, 65536, 65537}) {
    const KeyedPermutation order(size, /*seed=*/5, /*epoch=*/1);
    std::vector<bool> seen(static_cast<std::size_t>(size), false);
    for (const std::int64_t number : First(order, size)) {
      ASSERT_GE(number, 0);
      ASSERT_LT(number, size);
      EXPECT_FALSE(seen[static_cast<std::size_t>(number)]) << number << " of " << size;
      seen[static_cast<std::size_t>(number)] = true;
    }
  }
}

// A run resumed by a newer program must continue in the original order. The numbers are from a
// separate program in Python.
TEST(KeyedPermutationTest, OrdersStayWhatTheyWere) {
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(First(KeyedPermutation(10, 0, 0), 10), (Numbers{6, 3, 9, 4, 0, 8, 1, 2, 7, 5}));
  EXPECT_EQ(First(KeyedPermutation(10, 0, 1), 10), (Numbers{1, 2, 7, 8, 9, 0, 6, 4, 5, 3}));
  EXPECT_EQ(First(KeyedPermutation(1000, 7, 3), 5), (Numbers{673, 250, 176, 30, 663}));
  EXPECT_EQ(First(KeyedPermutation(1'000'000'000'007, 1, 2), 3),
            (Numbers{789983042407, 471449880711, 854859963134}));
}

// Neighbours must be separated: with one bit too few mixed, a text's windows would come in runs.
TEST(KeyedPermutationTest, NumbersComeFromEverywhere) {
  constexpr std::int64_t kSize = (std::int64_t{1} << 26) + 12345;
  constexpr std::int64_t kDrawn = 160'000;
  const KeyedPermutation order(kSize, /*seed=*/1, /*epoch=*/0);
  std::vector<int> where(16, 0);
  std::vector<int> steps(16, 0);
  std::int64_t before = order.At(kDrawn);
  for (const std::int64_t number : First(order, kDrawn)) {
    ++where[static_cast<std::size_t>(number * 16 / kSize)];
    ++steps[static_cast<std::size_t>(((number - before + kSize) % kSize) * 16 / kSize)];
    before = number;
  }
  for (const int count : where) EXPECT_NEAR(count, kDrawn / 16, 500);  // five deviations
  for (const int count : steps) EXPECT_NEAR(count, kDrawn / 16, 500);
}

}  // namespace
}  // namespace muster::trainer
