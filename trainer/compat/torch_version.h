// The version of LibTorch, and facts that depend on it alone. Cheap to include: includes nothing
// else of LibTorch.
#pragma once

#include <torch/version.h>

// 1.13 is 113, 2.6 is 206.
#define MUSTER_TORCH_VERSION (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)

namespace muster::trainer::compat {

// "1.13.1".
inline constexpr char kTorchVersion[] = TORCH_VERSION;

// Whether this version's Python AdamW computes the mean of the gradients with lerp_, which rounds
// differently from mul_ and add_: since 2.1.
inline constexpr bool kAdamWInterpolatesMean = MUSTER_TORCH_VERSION >= 201;

// Whether this version's Python AdamW computes a square root as `x ** 0.5`, which the C library
// does not always round like sqrt: since 2.5.
inline constexpr bool kAdamWRootIsPower = MUSTER_TORCH_VERSION >= 205;

}  // namespace muster::trainer::compat
