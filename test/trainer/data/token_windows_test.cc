#include "trainer/data/samples/token_windows.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace muster::trainer {
namespace {

using Numbers = std::vector<std::int64_t>;

// Tokens first, first + 1, ...
TokenRange Counting(std::uint16_t first, std::int64_t size, const std::string& source = "memory") {
  const auto tokens = std::make_shared<std::vector<std::uint16_t>>();
  while (static_cast<std::int64_t>(tokens->size()) < size) {
    tokens->push_back(static_cast<std::uint16_t>(first + tokens->size()));
  }
  return {.owner = tokens,
          .begin = reinterpret_cast<const std::uint8_t*>(tokens->data()),
          .size = size,
          .type = TokenType::kUint16,
          .source = source};
}

// The first input of a window, if inputs and targets count on from there; else -1.
std::int64_t Begin(const TokenWindows& windows, std::int64_t index, std::int64_t shift = 0) {
  const auto context = static_cast<std::size_t>(windows.context());
  Numbers inputs(context);
  Numbers targets(context);
  windows.Copy(index, shift, inputs.data(), targets.data());
  for (std::size_t i = 0; i < context; ++i) {
    if (inputs[i] != inputs[0] + static_cast<std::int64_t>(i)) return -1;
    if (targets[i] != inputs[i] + 1) return -1;
  }
  return inputs[0];
}

TEST(TokenRangeTest, IsSplitWhereItIsTold) {
  const std::vector<TokenRange> ranges = {Counting(0, 10), Counting(100, 5), Counting(200, 5)};
  EXPECT_EQ(TotalTokens(ranges), 20);
  const auto [before, after] = SplitAt(ranges, 12);
  ASSERT_EQ(before.size(), 2u);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(before[1].size, 2);
  EXPECT_EQ(TokenAt(before[1], 1), 101u);
  EXPECT_EQ(after[0].size, 3);
  EXPECT_EQ(after[0].first, 2);
  EXPECT_EQ(TokenAt(after[0], 0), 102u);
  EXPECT_EQ(SplitAt(ranges, 10).first.size(), 1u);
  EXPECT_EQ(SplitAt(ranges, 10).second.size(), 2u);
}

TEST(TokenWindowsTest, NoWindowReachesIntoTheNextFile) {
  // 3, 0, 1, 0 and 2 windows.
  const TokenWindows windows(
      {Counting(0, 47), Counting(100, 19), Counting(200, 29), Counting(300, 5), Counting(400, 30)},
      /*context=*/10, /*vocabulary=*/1000, /*seed=*/1);
  ASSERT_EQ(windows.size(), 6);
  const Numbers begins = {0, 10, 20, 200, 400, 410};
  for (std::int64_t i = 0; i < 6; ++i) {
    for (const std::int64_t shift : {0, 9}) {
      EXPECT_EQ(Begin(windows, i, shift), begins[static_cast<std::size_t>(i)] + shift);
    }
  }
}

TEST(TokenWindowsTest, TheShortestFileWithAWindowHasTwoContexts) {
  EXPECT_EQ(TokenWindows({Counting(0, 20)}, 10, 1000, 1).size(), 1);
  EXPECT_EQ(TokenWindows({Counting(0, 19)}, 10, 1000, 1).size(), 0);
  EXPECT_EQ(TokenWindows({Counting(0, 5)}, std::int64_t{1} << 62, 1000, 1).size(), 0);
  EXPECT_EQ(Begin(TokenWindows({Counting(0, 20)}, 10, 1000, 1), 0, /*shift=*/9), 9);
}

// A run resumed by a newer program must see the same windows.
TEST(TokenWindowsTest, ShiftsStayWhatTheyWere) {
  const TokenWindows windows({Counting(0, 2000)}, 128, 5000, /*seed=*/7);
  Numbers shifts;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) shifts.push_back(windows.ShiftOf(epoch));
  EXPECT_EQ(shifts, (Numbers{120, 108, 93, 17, 76}));
}

TEST(TokenWindowsTest, ATokenOutsideOfTheVocabularyIsNamedWithItsPlace) {
  const TokenWindows windows(
      {Counting(0, 100).Part(40, 60), Counting(500, 50, "b.bin").Part(10, 40)},
      /*context=*/10, /*vocabulary=*/533, /*seed=*/1);
  EXPECT_EQ(Begin(windows, 5), 510);
  try {
    Begin(windows, 7);
    FAIL() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "read b.bin: its token 33, at byte 66, is 533, which is outside of the vocabulary "
                 "of 533; --vocabulary or --token-type (uint16) does not fit this file");
  }
  // The last of the targets counts as well.
  EXPECT_THROW(Begin(windows, 6, /*shift=*/3), std::invalid_argument);
  EXPECT_EQ(Begin(windows, 6, /*shift=*/2), 522);
}

}  // namespace
}  // namespace muster::trainer
