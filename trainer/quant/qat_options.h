// The phases of a training for 8-bit numbers, by epoch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {

struct QatOptions {
  bool on = false;
  // The first epochs, in which ranges are observed and nothing is rounded.
  std::int64_t observe_epochs = 1;
  // The epoch, counted from 0, from which ranges are fixed; 0: the last third of all epochs.
  std::int64_t freeze_epoch = 0;

  // The freeze epoch out of `epochs`, rounded up: a run of two never freezes.
  std::int64_t FreezeEpoch(std::int64_t epochs) const {
    return freeze_epoch > 0 ? freeze_epoch : epochs - epochs / 3;
  }
};

// Names in a state dict.

// Whether a tensor called `name` belongs to --qat's observers, which the same model without --qat
// lacks.
inline bool IsOfFakeQuantize(std::string_view name) {
  return name.find("fake_quant") != std::string_view::npos ||
         name.find("activation_post_process.") != std::string_view::npos;
}

// The name of the tensor `name` in the same model without --qat, where a batch normalization is
// next to its convolution and not in it: "layer1.0.conv1.bn.weight" is "layer1.0.bn1.weight" there,
// and of a torch::nn::Sequential "downsample.0.bn.weight" is "downsample.1.weight". Other names are
// the same.
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
