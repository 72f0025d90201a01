// Sums of floating-point arrays, for the element types of gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::trainer {

enum class ElementType { kFloat, kDouble, kHalf, kBFloat16 };

std::size_t ElementBytes(ElementType type);

// out[i] = scale * (sources[0][i] + sources[1][i] + ...) for `count` elements, summed in that
// order, in double for kDouble and otherwise in float. kHalf and kBFloat16 are rounded once, at the
// end (to nearest, ties to even). `out` may be one of the sources.
void ScaledSum(ElementType type, std::span<const std::byte* const> sources, std::size_t count,
               double scale, std::byte* out);

}  // namespace muster::trainer
