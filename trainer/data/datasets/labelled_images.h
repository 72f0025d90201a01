// Images as bytes, as files hold them, with a class for each.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::trainer {

struct LabelledImages {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 10;
  std::vector<std::uint8_t> pixels;  // count x channels x height x width
  std::vector<std::uint8_t> labels;  // count

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

}  // namespace muster::trainer
