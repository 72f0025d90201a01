// Tensors as the bytes that a file holds.
#pragma once

#include <optional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "trainer/io/dtype.h"

namespace muster::trainer {

// nullopt when files have no name for it.
std::optional<Dtype> DtypeOf(const at::Tensor& tensor);

// A tensor on the CPU for `elements` elements of dtype `dtype`, not filled. Throws c10::Error when
// there is no memory for it.
at::Tensor EmptyTensor(Dtype dtype, std::int64_t elements);

// The elements of `tensor` in row-major order on the CPU: itself if that is what it is, else a
// copy. Never needs a gradient.
at::Tensor DenseOnCpu(const at::Tensor& tensor);

// The memory of a tensor of the two functions above. Good as long as `tensor` is.
std::string_view BytesOf(const at::Tensor& tensor);

}  // namespace muster::trainer
