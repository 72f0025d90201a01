#include "trainer/io/tensor_copies.h"

#include <map>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "trainer/io/map_value.h"
#include "trainer/io/tensor_bytes.h"

namespace muster::trainer {

absl::StatusOr<Value> TensorCopies::Copy(const Value& value) {
  const at::NoGradGuard no_grad;
  std::map<ElementsKey, at::Tensor> copied;
  std::size_t used = 0;
  auto copy = [&](const at::Tensor& tensor, const std::string&) -> absl::StatusOr<Value> {
    // Whoever writes the value says what is wrong with it.
    if (!tensor.defined() || tensor.layout() != at::kStrided) return Value(tensor);
    at::Tensor& same = copied[KeyOfElements(tensor)];
    if (same.defined()) return Value(same);
    if (used == buffers_.size()) buffers_.emplace_back();
    at::Tensor& buffer = buffers_[used++];
    if (!buffer.defined() || buffer.sizes() != tensor.sizes() ||
        buffer.scalar_type() != tensor.scalar_type()) {
      buffer = at::empty(tensor.sizes(), tensor.scalar_type());
    }
    buffer.copy_(tensor);
    same = buffer;
    return Value(buffer);
  };
  absl::StatusOr<Value> copies = MapTensors<at::Tensor>(value, copy, "");
  buffers_.resize(used);
  return copies;
}

}  // namespace muster::trainer
