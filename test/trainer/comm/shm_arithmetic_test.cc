// Conversions against the compiler's own half type, bit by bit, and sums of every element type.
#include "trainer/comm/shm_arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace muster::trainer {
namespace {

TEST(ShmArithmeticTest, EveryHalfBecomesItsFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(half));
    const float value = HalfToFloat(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected))
          << bits;
      ASSERT_EQ(FloatToHalf(value), half);
    }
  }
}

TEST(ShmArithmeticTest, FloatsAreRoundedToTheNearestHalf) {
  // A step without small factors meets every exponent and all kinds of last bits.
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32U); bits += 2503) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToHalf(value), std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)))
        << bits;
  }
  // Half way between two neighbours: to the even one.
  EXPECT_EQ(FloatToHalf(1.0F + 0x1p-11F), 0x3c00);
  EXPECT_EQ(FloatToHalf(1.0F + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(FloatToHalf(0x1p-25F), 0);
  EXPECT_EQ(FloatToHalf(65519.0F), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0F), 0x7c00);
}

TEST(ShmArithmeticTest, FloatsAreRoundedToTheNearestBFloat16) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = BFloat16ToFloat(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(value))));
    } else {
      ASSERT_EQ(FloatToBFloat16(value), bits);
    }
  }
  EXPECT_EQ(FloatToBFloat16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0F + 3 * 0x1p-8F), 0x3f82);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
}

// Sums three arrays of values that have no rounding, in place.
template <typename Element, typename Encode, typename Decode>
void ExpectSum(ElementType type, Encode encode, Decode decode) {
  ASSERT_EQ(ElementBytes(type), sizeof(Element));
  for (const std::size_t count : {0UL, 1UL, 7UL, 1024UL, 2500UL}) {
    std::vector<std::vector<Element>> arrays(3, std::vector<Element>(count));
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        arrays[k][i] = encode(static_cast<float>((i * 7 + k * 3) % 64) - 32);
      }
    }
    const std::vector<Element> own = arrays[1];
    const std::vector<const std::byte*> sources = {reinterpret_cast<std::byte*>(arrays[0].data()),
                                                   reinterpret_cast<std::byte*>(arrays[1].data()),
                                                   reinterpret_cast<std::byte*>(arrays[2].data())};
    ScaledSum(type, sources, count, 0.5, reinterpret_cast<std::byte*>(arrays[1].data()));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(decode(arrays[1][i]),
                (decode(arrays[0][i]) + decode(own[i]) + decode(arrays[2][i])) * 0.5F)
          << i << " of " << count;
    }
  }
}

TEST(ShmArithmeticTest, SumsOfEveryType) {
  const auto same = [](auto value) { return value; };
  ExpectSum<float>(ElementType::kFloat, same, same);
  ExpectSum<double>(ElementType::kDouble, same, same);
  ExpectSum<std::uint16_t>(ElementType::kHalf, FloatToHalf, HalfToFloat);
  ExpectSum<std::uint16_t>(ElementType::kBFloat16, FloatToBFloat16, BFloat16ToFloat);
}

TEST(ShmArithmeticTest, HalvesThatWouldOverflowAreFirstScaled) {
  // 40000 + 40000 is more than the largest half, 65504; their mean is not.
  const std::uint16_t value = FloatToHalf(40000);
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  const std::vector<const std::byte*> sources = {bytes, bytes};
  std::uint16_t mean = 0;
  ScaledSum(ElementType::kHalf, sources, 1, 0.5, reinterpret_cast<std::byte*>(&mean));
  EXPECT_EQ(HalfToFloat(mean), 40000);
}

}  // namespace
}  // namespace muster::trainer
