#include "trainer/comm/shm_arithmetic.h"

#include <algorithm>
#include <array>
#include <bit>

namespace muster::trainer {
namespace {

// As many as stay in the first-level cache, with the sources beside them.
constexpr std::size_t kBlock = 1024;

// How one element type is read and written. c10::Half and c10::BFloat16 give the same bits, one at
// a time; these have no branches, so that the compiler can turn the loops over them into vector
// instructions.
struct Plain {
  template <typename T>
  static T Load(T value) {
    return value;
  }
  template <typename T>
  static T Store(T value) {
    return value;
  }
};

struct Half {
  static float Load(std::uint16_t bits) {
    // Exponent and mantissa in their places for a float, and then the exponent's bias put right by
    // a multiplication, which gets the subnormal ones right as well.
    const std::uint32_t shifted = static_cast<std::uint32_t>(bits & 0x7fffU) << 13U;
    const float value = std::bit_cast<float>(shifted) * std::bit_cast<float>(0x77800000U);  // 2^112
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t special = value >= 65536.0F ? 0x7f800000U : 0U;  // infinite, or no number
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
    return std::bit_cast<float>(magnitude | special | sign);
  }
  static std::uint16_t Store(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits & 0x80000000U;
    const std::uint32_t magnitude = bits ^ sign;
    // Normal ones: the exponent's bias, and half of the last place (less one bit, if that is even).
    const std::uint32_t normal = (magnitude + 0xc8000fffU + ((magnitude >> 13U) & 1U)) >>
                                 13U;  // 0xc8000000: (15 - 127) << 23
    // Subnormal ones: an addition that leaves the wanted bits in the last places, rounded.
    constexpr std::uint32_t kMagic = 0x3f000000U;  // 0.5
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) +
                                                                 std::bit_cast<float>(kMagic)) -
                                    kMagic;
    const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
    std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;  // below 2^-14
    result = magnitude >= 0x47800000U ? special : result;                 // from 2^16
    return static_cast<std::uint16_t>(result | (sign >> 16U));
  }
};

struct BFloat16 {
  static float Load(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }
  static std::uint16_t Store(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
    const bool no_number = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>(no_number ? 0x7fc0U : rounded);
  }
};

template <typename Format, typename Element, typename Sum>
void SumAs(std::span<const std::byte* const> sources, std::size_t count, Sum scale,
           std::byte* out) {
  std::array<Sum, kBlock> sums;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    const auto at = [&](std::size_t source) {
      return reinterpret_cast<const Element*>(sources[source]) + begin;
    };
    const Element* const first = at(0);
    for (std::size_t i = 0; i < length; ++i) sums[i] = Format::Load(first[i]);
    for (std::size_t source = 1; source < sources.size(); ++source) {
      const Element* const next = at(source);
      for (std::size_t i = 0; i < length; ++i) sums[i] += Format::Load(next[i]);
    }
    Element* const to = reinterpret_cast<Element*>(out) + begin;
    for (std::size_t i = 0; i < length; ++i) to[i] = Format::Store(sums[i] * scale);
  }
}

}  // namespace

std::size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return 4;
    case ElementType::kDouble:
      return 8;
    case ElementType::kHalf:
    case ElementType::kBFloat16:
      return 2;
  }
  return 0;
}

void ScaledSum(ElementType type, std::span<const std::byte* const> sources, std::size_t count,
               double scale, std::byte* out) {
  const auto narrow = static_cast<float>(scale);
  switch (type) {
    case ElementType::kFloat:
      return SumAs<Plain, float>(sources, count, narrow, out);
    case ElementType::kDouble:
      return SumAs<Plain, double>(sources, count, scale, out);
    case ElementType::kHalf:
      return SumAs<Half, std::uint16_t>(sources, count, narrow, out);
    case ElementType::kBFloat16:
      return SumAs<BFloat16, std::uint16_t>(sources, count, narrow, out);
  }
}

}  // namespace muster::trainer
