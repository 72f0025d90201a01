// A data set made from nothing, for tests and for machines without one.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::trainer {

// Images as they would be read from IDX files: `count` of 28 x 28 bytes, and a class in [0, 10) for
// each.
struct GeneratedImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

// Makes `count` images with pixels of 8 x 8 blocks that depend on the class, shifted and noisy, so
// that a small model learns them within an epoch. The same `count` and `seed` give the same bytes
// everywhere.
GeneratedImages GenerateImages(std::int64_t count, std::uint64_t seed);

}  // namespace muster::trainer
