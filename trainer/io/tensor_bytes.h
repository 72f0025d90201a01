// Converts between tensors and their bytes in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/io/dtype.h"

namespace muster::trainer {

// The tensor's type; nullopt when files have no name for it.
std::optional<Dtype> DtypeOf(const at::Tensor& tensor);

// LibTorch's name for `dtype`.
at::ScalarType ScalarTypeOf(Dtype dtype);

// An uninitialized CPU tensor with `elements` elements of type `dtype`. Throws c10::Error when
// memory runs out.
at::Tensor EmptyTensor(Dtype dtype, std::int64_t elements);

// Identifies the elements that a tensor shows: two tensors with the same key show the same ones in
// the same order. Tensors without elements have no memory by which to tell them apart.
using ElementsKey =
    std::tuple<const void*, at::ScalarType, std::vector<std::int64_t>, std::vector<std::int64_t>>;
ElementsKey KeyOfElements(const at::Tensor& tensor);

// The elements of `tensor` in row-major order on the CPU: shares them if they already are, else
// copies them. Never requires a gradient.
at::Tensor DenseOnCpu(const at::Tensor& tensor);

// The memory of a tensor returned by one of the two functions above. Valid as long as the tensor.
std::string_view BytesOf(const at::Tensor& tensor);

}  // namespace muster::trainer
