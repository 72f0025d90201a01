#include "trainer/data/datasets/generated.h"

#include <algorithm>
#include <array>
#include <random>

namespace muster::trainer {
namespace {

constexpr int kSide = 28;
constexpr int kClasses = 10;
// A class is a pattern of 4 x 4 blocks of 8 pixels: 32 wide, so that it can be shifted by up to 4
// pixels.
constexpr int kBlocks = 4;
constexpr int kBlockSide = 8;
constexpr int kMaxShift = kBlocks * kBlockSide - kSide;

using Pattern = std::array<std::uint8_t, kBlocks * kBlocks>;

// The patterns do not depend on the seed: training and test images are of the same classes.
std::array<Pattern, kClasses> Patterns() {
  std::mt19937_64 random(10);
  std::array<Pattern, kClasses> patterns{};
  for (Pattern& pattern : patterns) {
    for (std::uint8_t& level : pattern) level = random() % 2 == 0 ? 40 : 200;
  }
  return patterns;
}

}  // namespace

LabelledImages GenerateImageSet(std::int64_t count, std::uint64_t seed) {
  const std::array<Pattern, kClasses> patterns = Patterns();
  // Only the generator's own bits are used: the standard's distributions differ between libraries.
  std::mt19937_64 random(seed);
  LabelledImages images{.height = kSide, .width = kSide, .classes = kClasses};
  images.pixels.reserve(static_cast<std::size_t>(count) * kSide * kSide);
  images.labels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(random() % kClasses);
    const int down = static_cast<int>(random() % (kMaxShift + 1));
    const int right = static_cast<int>(random() % (kMaxShift + 1));
    images.labels.push_back(label);
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const int block = (y + down) / kBlockSide * kBlocks + (x + right) / kBlockSide;
        const int noise = static_cast<int>(random() % 81) - 40;
        const int level = patterns[label][static_cast<std::size_t>(block)] + noise;
        images.pixels.push_back(static_cast<std::uint8_t>(std::clamp(level, 0, 255)));
      }
    }
  }
  return images;
}

}  // namespace muster::trainer
