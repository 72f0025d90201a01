// Which LibTorch this is, and what follows from that alone. Light: includes nothing else of
// LibTorch.
#pragma once

#include <torch/version.h>

// 1.13 is 113, 2.6 is 206.
#define MUSTER_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

namespace muster::trainer::compat {

// Whether Python's AdamW of this version computes the mean of gradients by lerp_, which rounds
// differently from mul_ and add_: since 2.1.
inline constexpr bool kAdamWInterpolatesMean = MUSTER_TORCH_VERSION >= 201;

// Whether Python's AdamW of this version takes a square root as `x ** 0.5`, which the C library
// does not always round as sqrt: since 2.5.
inline constexpr bool kAdamWRootIsPower = MUSTER_TORCH_VERSION >= 205;

}  // namespace muster::trainer::compat
