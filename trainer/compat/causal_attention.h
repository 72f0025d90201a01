// Attention in which every token looks at itself and those before it. Since 2.1 LibTorch has it as
// one operation, which keeps no matrix of all pairs. Include it only from .cc files.
#pragma once

#include <cmath>
#include <limits>

#include <ATen/core/Tensor.h>

#include "trainer/compat/torch_version.h"

#if MUSTER_TORCH_VERSION >= 201
#include <ATen/ops/scaled_dot_product_attention.h>
#endif

namespace muster::trainer::compat {

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
