#include "trainer/io/tensor_bytes.h"

#include <array>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace muster::trainer {
namespace {

constexpr std::array<std::pair<Dtype, at::ScalarType>, 10> kTypes = {{
    {Dtype::kFloat64, at::kDouble},
    {Dtype::kFloat32, at::kFloat},
    {Dtype::kFloat16, at::kHalf},
    {Dtype::kBfloat16, at::kBFloat16},
    {Dtype::kInt64, at::kLong},
    {Dtype::kInt32, at::kInt},
    {Dtype::kInt16, at::kShort},
    {Dtype::kInt8, at::kChar},
    {Dtype::kUint8, at::kByte},
    {Dtype::kBool, at::kBool},
}};

}  // namespace

std::optional<Dtype> DtypeOf(const at::Tensor& tensor) {
  for (const auto& [dtype, type] : kTypes) {
    if (type == tensor.scalar_type()) return dtype;
  }
  return std::nullopt;
}

at::ScalarType ScalarTypeOf(Dtype dtype) {
  return kTypes[static_cast<std::size_t>(dtype)].second;
}

at::Tensor EmptyTensor(Dtype dtype, std::int64_t elements) {
  return at::empty({elements}, ScalarTypeOf(dtype));
}

ElementsKey KeyOfElements(const at::Tensor& tensor) {
  return {tensor.data_ptr(), tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()};
}

at::Tensor DenseOnCpu(const at::Tensor& tensor) {
  return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
}

std::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace muster::trainer
