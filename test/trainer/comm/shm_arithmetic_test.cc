// Compares rounding with LibTorch's own types, bit for bit, and tests sums of every element type.
#include "trainer/comm/host/shm_arithmetic.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace muster::trainer {
namespace {

// `Value`s as their bits.
template <typename Value>
Value OfBits(std::uint16_t bits) {
  return Value(bits, Value::from_bits());
}

// `values` times `scale`, by ScaledSum.
template <typename Value>
std::vector<Value> Scaled(ElementType type, const std::vector<Value>& values, double scale) {
  std::vector<Value> scaled(values.size());
  const std::vector<const std::byte*> sources = {reinterpret_cast<const std::byte*>(values.data())};
  ScaledSum(type, sources, values.size(), scale, reinterpret_cast<std::byte*>(scaled.data()));
  return scaled;
}

// Every value, times factors that reach other exponents, subnormal numbers, infinity and all kinds
// of last bits, has the bits of LibTorch's own arithmetic.
template <typename Value>
void ExpectRoundedAsLibTorchDoes(ElementType type) {
  std::vector<Value> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    all.push_back(OfBits<Value>(static_cast<std::uint16_t>(bits)));
  }
  for (const float scale : {1.0F, 1.0F / 3, 0x1p-11F, 0x1.8p-13F, 1.0009765625F, 1.7F, 4099.0F}) {
    const std::vector<Value> scaled = Scaled(type, all, scale);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Value wanted = static_cast<float>(all[i]) * scale;
      if (std::isnan(static_cast<float>(wanted))) {
        ASSERT_TRUE(std::isnan(static_cast<float>(scaled[i]))) << i << " times " << scale;
      } else {
        ASSERT_EQ(scaled[i].x, wanted.x) << i << " times " << scale;
      }
    }
  }
}

TEST(ShmArithmeticTest, HalvesAreRoundedAsLibTorchDoes) {
  ExpectRoundedAsLibTorchDoes<c10::Half>(ElementType::kHalf);
}

TEST(ShmArithmeticTest, BFloat16sAreRoundedAsLibTorchDoes) {
  ExpectRoundedAsLibTorchDoes<c10::BFloat16>(ElementType::kBFloat16);
}

TEST(ShmArithmeticTest, HalfWayBetweenTwoNeighboursIsTheEvenOne) {
  const auto half = [](double scale) {
    return Scaled(ElementType::kHalf, std::vector<c10::Half>{1.0F}, scale)[0].x;
  };
  EXPECT_EQ(half(1 + 0x1p-11), 0x3c00);
  EXPECT_EQ(half(1 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(half(0x1p-25), 0);
  EXPECT_EQ(half(65519), 0x7bff);
  EXPECT_EQ(half(65520), 0x7c00);
  const auto bfloat16 = [](double scale) {
    return Scaled(ElementType::kBFloat16, std::vector<c10::BFloat16>{1.0F}, scale)[0].x;
  };
  EXPECT_EQ(bfloat16(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(bfloat16(1 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()), 0x7f80);
}

// Sums three arrays of exactly representable values, in place.
template <typename Element>
void ExpectSum(ElementType type) {
  ASSERT_EQ(ElementBytes(type), sizeof(Element));
  for (const std::size_t count : {0UL, 1UL, 7UL, 1024UL, 2500UL}) {
    std::vector<std::vector<Element>> arrays(3, std::vector<Element>(count));
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        arrays[k][i] = static_cast<float>((i * 7 + k * 3) % 64) - 32;
      }
    }
    const std::vector<Element> own = arrays[1];
    const std::vector<const std::byte*> sources = {reinterpret_cast<std::byte*>(arrays[0].data()),
                                                   reinterpret_cast<std::byte*>(arrays[1].data()),
                                                   reinterpret_cast<std::byte*>(arrays[2].data())};
    ScaledSum(type, sources, count, 0.5, reinterpret_cast<std::byte*>(arrays[1].data()));
    const auto number = [](Element element) { return static_cast<float>(element); };
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(number(arrays[1][i]),
                (number(arrays[0][i]) + number(own[i]) + number(arrays[2][i])) * 0.5F)
          << i << " of " << count;
    }
  }
}

TEST(ShmArithmeticTest, SumsOfEveryType) {
  ExpectSum<float>(ElementType::kFloat);
  ExpectSum<double>(ElementType::kDouble);
  ExpectSum<c10::Half>(ElementType::kHalf);
  ExpectSum<c10::BFloat16>(ElementType::kBFloat16);
}

TEST(ShmArithmeticTest, HalvesThatWouldOverflowAreFirstScaled) {
  // 40000 + 40000 is more than the largest half, 65504; their mean is not.
  const c10::Half value = 40000.0F;
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  const std::vector<const std::byte*> sources = {bytes, bytes};
  c10::Half mean;
  ScaledSum(ElementType::kHalf, sources, 1, 0.5, reinterpret_cast<std::byte*>(&mean));
  EXPECT_EQ(static_cast<float>(mean), 40000);
}

}  // namespace
}  // namespace muster::trainer
