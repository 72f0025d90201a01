// The padding of a convolution.
#pragma once

#include <optional>

#include <torch/nn/options/conv.h>

namespace muster::trainer {

// The zeros around an image, height and width; nullopt when it is padded otherwise. The variant is
// LibTorch's own before 2, and then the standard library's: get_if is found beside it.
inline std::optional<torch::ExpandingArray<2>> PaddingOf(
    const torch::nn::detail::ConvNdOptions<2>& options) {
  const auto* numbers = get_if<torch::ExpandingArray<2>>(&options.padding());
  const auto* zeros = get_if<torch::enumtype::kZeros>(&options.padding_mode());
  if (numbers == nullptr || zeros == nullptr) return std::nullopt;
  return *numbers;
}

}  // namespace muster::trainer
