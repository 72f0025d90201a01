// What one sample of a data set looks like: what a model has to fit.
#pragma once

#include <cstdint>

namespace muster::trainer {

struct DataShape {
  enum class Kind { kImages, kText };
  Kind kind = Kind::kImages;

  // Of images.
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  // Of images: how many classes. Of text: how many different tokens, 256 for bytes.
  std::int64_t classes = 10;
  // Of text: tokens in a window.
  std::int64_t context = 0;
};

}  // namespace muster::trainer
