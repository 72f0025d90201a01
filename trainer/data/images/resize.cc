#include "trainer/data/images/resize.h"

#include <algorithm>
#include <cmath>

namespace muster::trainer {
namespace {

constexpr std::int64_t kColors = 3;
// Weights are whole numbers of 2^-22, as in Pillow (libImaging/Resample.c): their products with
// bytes add up in 32 bits.
constexpr int kWeightBits = 22;

// Which pixels of the original make up one of the result.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

// For pixels `begin` to `begin` + `count` - 1 of a line that is resized from `from` to `to` pixels.
std::vector<Taps> TapsOf(std::int64_t from, std::int64_t to, std::int64_t begin,
                         std::int64_t count) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<std::size_t>(count));
  std::vector<double> shares;
  for (std::int64_t i = 0; i < count; ++i) {
    Taps& taps = all[static_cast<std::size_t>(i)];
    const double center = (static_cast<double>(begin + i) + 0.5) * scale;
    taps.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - reach + 0.5));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(center + reach + 0.5));
    shares.clear();
    double sum = 0;
    for (std::int64_t x = taps.first; x < end; ++x) {
      const double distance = std::abs((static_cast<double>(x) - center + 0.5) * (1.0 / reach));
      shares.push_back(std::max(0.0, 1 - distance));
      sum += shares.back();
    }
    const double unit = 1.0 / sum;
    for (const double share : shares) {
      taps.weights.push_back(
          static_cast<std::int32_t>(0.5 + share * unit * (std::int64_t{1} << kWeightBits)));
    }
  }
  return all;
}

// The weighted mean of bytes that are `stride` apart.
std::uint8_t Mean(const Taps& taps, const std::uint8_t* from, std::int64_t stride) {
  std::int32_t sum = 1 << (kWeightBits - 1);
  for (const std::int32_t weight : taps.weights) {
    sum += weight * *from;
    from += stride;
  }
  // The weights' own rounding can lift white above 255.
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// Python's round((all - part) / 2): halves go to the even number.
std::int64_t Middle(std::int64_t all, std::int64_t part) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(all - part) / 2));
}

}  // namespace

std::vector<std::uint8_t> ResizedSquare(const RgbImage& image, std::int64_t side) {
  const std::int64_t shorter = std::min(image.height, image.width);
  const std::int64_t height = side * image.height / shorter;
  const std::int64_t width = side * image.width / shorter;
  const std::vector<Taps> across = TapsOf(image.width, width, Middle(width, side), side);
  const std::vector<Taps> down = TapsOf(image.height, height, Middle(height, side), side);

  // The rows that the square needs, each already as wide as it.
  const std::int64_t top = down.front().first;
  const std::int64_t bottom =
      down.back().first + static_cast<std::int64_t>(down.back().weights.size());
  std::vector<std::uint8_t> rows(static_cast<std::size_t>((bottom - top) * side * kColors));
  std::uint8_t* to = rows.data();
  for (std::int64_t y = top; y < bottom; ++y) {
    const std::uint8_t* row = image.pixels.data() + y * image.width * kColors;
    for (const Taps& taps : across) {
      for (std::int64_t color = 0; color < kColors; ++color) {
        *to++ = Mean(taps, row + taps.first * kColors + color, kColors);
      }
    }
  }

  std::vector<std::uint8_t> square(static_cast<std::size_t>(kColors * side * side));
  for (std::int64_t y = 0; y < side; ++y) {
    const Taps& taps = down[static_cast<std::size_t>(y)];
    for (std::int64_t x = 0; x < side; ++x) {
      for (std::int64_t color = 0; color < kColors; ++color) {
        const std::uint8_t* from = rows.data() + ((taps.first - top) * side + x) * kColors + color;
        square[static_cast<std::size_t>((color * side + y) * side + x)] =
            Mean(taps, from, side * kColors);
      }
    }
  }
  return square;
}

}  // namespace muster::trainer
