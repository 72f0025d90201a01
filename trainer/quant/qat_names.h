// Names in a state dict.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {

// Whether a tensor called `name` belongs to what --qat observes, which the same model without it
// does not have.
inline bool IsOfFakeQuantize(std::string_view name) {
  return name.find("fake_quant") != std::string_view::npos ||
         name.find("activation_post_process.") != std::string_view::npos;
}

// What the tensor called `name` is called in the same model without --qat, where a batch
// normalization stands beside its convolution and not in it: "layer1.0.conv1.bn.weight" is
// "layer1.0.bn1.weight" there, and of a torch::nn::Sequential "downsample.0.bn.weight" is
// "downsample.1.weight". Other names are the same.
inline std::string FloatName(std::string_view name) {
  constexpr std::string_view kInside = ".bn.";
  constexpr std::string_view kConvolution = "conv";
  const std::size_t inside = name.rfind(kInside);
  if (inside == std::string_view::npos) return std::string(name);
  const std::size_t dot = name.rfind('.', inside - 1);
  const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
  const std::string_view layer = name.substr(begin, inside - begin);
  const std::string_view block = name.substr(0, begin);
  const std::string_view tensor = name.substr(inside + kInside.size());
  int index = 0;
  if (absl::SimpleAtoi(std::string(layer), &index)) {
    return absl::StrCat(std::string(block), index + 1, ".", std::string(tensor));
  }
  if (layer.substr(0, kConvolution.size()) != kConvolution) return std::string(name);
  return absl::StrCat(std::string(block), "bn", std::string(layer.substr(kConvolution.size())), ".",
                      std::string(tensor));
}

}  // namespace muster::trainer
