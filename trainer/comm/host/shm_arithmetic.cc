#include "trainer/comm/host/shm_arithmetic.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>

namespace muster::trainer {
namespace {

// As many as fit in the first-level cache together with the sources.
constexpr std::size_t kBlock = 1024;

// c10's 16-bit types are converted to float for summing. The conversions are branch-free, and the
// compiler vectorizes those of bfloat16.
template <typename Element, typename Sum>
void SumAs(std::span<const std::byte* const> sources, std::size_t count, Sum scale,
           std::byte* out) {
  std::array<Sum, kBlock> sums;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    const auto at = [&](std::size_t source) {
      return reinterpret_cast<const Element*>(sources[source]) + begin;
    };
    const Element* const first = at(0);
    for (std::size_t i = 0; i < length; ++i) sums[i] = static_cast<Sum>(first[i]);
    for (std::size_t source = 1; source < sources.size(); ++source) {
      const Element* const next = at(source);
      for (std::size_t i = 0; i < length; ++i) sums[i] += static_cast<Sum>(next[i]);
    }
    Element* const to = reinterpret_cast<Element*>(out) + begin;
    for (std::size_t i = 0; i < length; ++i) to[i] = static_cast<Element>(sums[i] * scale);
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
      return SumAs<float, float>(sources, count, narrow, out);
    case ElementType::kDouble:
      return SumAs<double, double>(sources, count, scale, out);
    case ElementType::kHalf:
      return SumAs<c10::Half, float>(sources, count, narrow, out);
    case ElementType::kBFloat16:
      return SumAs<c10::BFloat16, float>(sources, count, narrow, out);
  }
}

}  // namespace muster::trainer
