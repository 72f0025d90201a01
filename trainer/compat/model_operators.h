// What models use of LibTorch and its versions have differently: autocast, whose functions 2.4
// renamed, and attention. Include it only from .cc files: the header for autocast includes every
// operator.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>

#include "trainer/compat/torch_version.h"

#if MUSTER_TORCH_VERSION >= 201
#include <ATen/ops/scaled_dot_product_attention.h>
#endif

namespace muster::trainer::compat {

// Turns autocast to `type` on or off for this thread's operators on `device` (kCPU or kCUDA).
inline void SetAutocast(at::DeviceType device, at::ScalarType type, bool on) {
#if MUSTER_TORCH_VERSION >= 204
  at::autocast::set_autocast_dtype(device, type);
  at::autocast::set_autocast_enabled(device, on);
#else
  // Before 2.4 each device type has its own functions.
  if (device == at::kCUDA) {
    at::autocast::set_autocast_gpu_dtype(type);
    at::autocast::set_enabled(on);
  } else {
    at::autocast::set_autocast_cpu_dtype(type);
    at::autocast::set_cpu_enabled(on);
  }
#endif
}

// The type to which it is turned on; nullopt when it is off.
inline std::optional<at::ScalarType> AutocastType(at::DeviceType device) {
#if MUSTER_TORCH_VERSION >= 204
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
#else
  const bool cuda = device == at::kCUDA;
  if (!(cuda ? at::autocast::is_enabled() : at::autocast::is_cpu_enabled())) return std::nullopt;
  return cuda ? at::autocast::get_autocast_gpu_dtype() : at::autocast::get_autocast_cpu_dtype();
#endif
}

// Attention in which every token looks at itself and those before it. Since 2.1 LibTorch has it as
// one operation, which keeps no matrix of all pairs.

// softmax(queries keys^T / sqrt(D)) values, by Vaswani et al., "Attention Is All You Need", 2017,
// 3.2.1. All are B x heads x T x D, as is the result. `hidden`: bool T x T, true above the
// diagonal.
inline at::Tensor CausalAttention(const at::Tensor& queries, const at::Tensor& keys,
                                  const at::Tensor& values,
                                  [[maybe_unused]] const at::Tensor& hidden) {
#if MUSTER_TORCH_VERSION >= 201
  return at::scaled_dot_product_attention(queries, keys, values, /*attn_mask=*/{},
                                          /*dropout_p=*/0.0, /*is_causal=*/true);
#else
  const at::Tensor weights = queries.matmul(keys.transpose(-2, -1));
  return (weights * (1.0 / std::sqrt(static_cast<double>(queries.size(-1)))))
      .masked_fill(hidden, -std::numeric_limits<double>::infinity())
      .softmax(-1)
      .matmul(values);
#endif
}

}  // namespace muster::trainer::compat
