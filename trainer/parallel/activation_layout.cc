#include "trainer/parallel/activation_layout.h"

#include <stdexcept>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kBeforeSizes = 3;
constexpr std::size_t kMostLayouts = 4096;

}  // namespace

ActivationLayout LayoutOf(const at::Tensor& tensor) {
  return {tensor.scalar_type(), tensor.sizes().vec(),
          tensor.dim() == 4 && tensor.suggest_memory_format() == at::MemoryFormat::ChannelsLast};
}

std::string Described(const ActivationLayout& layout) {
  return absl::StrCat(absl::StrJoin(layout.sizes, " x "), " ", c10::toString(layout.type));
}

at::Tensor EmptyOf(const ActivationLayout& layout, const at::Device& device) {
  return at::empty(
      layout.sizes, at::TensorOptions().dtype(layout.type).device(device),
      layout.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

at::Tensor ElementsOf(const at::Tensor& tensor, const ActivationLayout& layout) {
  return layout.channels_last ? tensor.permute({0, 2, 3, 1}).contiguous() : tensor.contiguous();
}

at::Tensor HeaderOf(const ActivationLayout& layout) {
  const auto dimensions = static_cast<std::int64_t>(layout.sizes.size());
  if (dimensions > kHeaderNumbers - kBeforeSizes) {
    throw std::invalid_argument(
        absl::StrCat("a pipeline sends tensors of up to 12 dimensions, and a stage returned one "
                     "of ",
                     dimensions));
  }
  at::Tensor header = at::zeros({kHeaderNumbers}, at::kLong);
  auto* numbers = header.data_ptr<std::int64_t>();
  numbers[0] = static_cast<std::int64_t>(layout.type);
  numbers[1] = layout.channels_last ? 1 : 0;
  numbers[2] = dimensions;
  for (std::int64_t size : layout.sizes) *(numbers++ + kBeforeSizes) = size;
  return header;
}

ActivationLayout ReadHeader(const at::Tensor& header) {
  const at::Tensor here = header.cpu();
  const auto* numbers = here.data_ptr<std::int64_t>();
  const std::int64_t* sizes = numbers + kBeforeSizes;
  return {static_cast<at::ScalarType>(numbers[0]), {sizes, sizes + numbers[2]}, numbers[1] != 0};
}

const ActivationLayout* ActivationLayouts::Find(const Key& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

void ActivationLayouts::Settle() {
  // Sender and receiver of a message have learned the same number of layouts of a part, but not of
  // all parts: so each part is counted for itself.
  known_.merge(learned_);
  learned_.clear();
  std::map<int, std::size_t> of_part;
  for (const auto& [key, layout] : known_) ++of_part[key.part];
  std::erase_if(known_, [&](const auto& one) { return of_part[one.first.part] > kMostLayouts; });
}

}  // namespace muster::trainer
