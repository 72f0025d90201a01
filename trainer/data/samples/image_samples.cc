#include "trainer/data/samples/image_samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace muster::trainer {
namespace {

double FourDigits(double x) {
  return std::round(x * 1e4) / 1e4;
}

void LookUp(const std::array<float, 256>& table, const std::uint8_t* from, std::int64_t count,
            float* to) {
  std::int64_t i = 0;
  // Eight bytes are read as one number and extracted from it: half again as fast as reading each
  // separately.
  if constexpr (std::endian::native == std::endian::little) {
    for (; i + 8 <= count; i += 8) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, from + i, sizeof bytes);
      to[i] = table[bytes & 0xff];
      to[i + 1] = table[bytes >> 8 & 0xff];
      to[i + 2] = table[bytes >> 16 & 0xff];
      to[i + 3] = table[bytes >> 24 & 0xff];
      to[i + 4] = table[bytes >> 32 & 0xff];
      to[i + 5] = table[bytes >> 40 & 0xff];
      to[i + 6] = table[bytes >> 48 & 0xff];
      to[i + 7] = table[bytes >> 56];
    }
  }
  for (; i < count; ++i) to[i] = table[from[i]];
}

// One row of an image, shifted left by `right` and mirrored; black outside the original.
void GatherRow(const std::array<float, 256>& table, const std::uint8_t* from, std::int64_t width,
               const ImageVariation& variation, float* to) {
  for (std::int64_t x = 0; x < width; ++x) {
    std::int64_t source = x + variation.right;
    if (variation.mirrored) source = width - 1 - source;
    to[x] = source >= 0 && source < width ? table[from[source]] : table[0];
  }
}

}  // namespace

Normalization MeasureNormalization(const LabelledImages& images) {
  const std::int64_t plane = images.height * images.width;
  Normalization norm;
  for (std::int64_t channel = 0; channel < images.channels; ++channel) {
    std::array<std::int64_t, 256> counts{};
    for (std::int64_t i = 0; i < images.count(); ++i) {
      const std::uint8_t* pixels = images.pixels.data() + (i * images.channels + channel) * plane;
      for (std::int64_t j = 0; j < plane; ++j) ++counts[pixels[j]];
    }
    const auto pixels = static_cast<double>(images.count() * plane);
    double mean = 0;
    for (int level = 0; level < 256; ++level) {
      mean += static_cast<double>(counts[static_cast<std::size_t>(level)]) * level / 255;
    }
    mean /= pixels;
    double variance = 0;
    for (int level = 0; level < 256; ++level) {
      const double distance = level / 255.0 - mean;
      variance +=
          static_cast<double>(counts[static_cast<std::size_t>(level)]) * distance * distance;
    }
    const double deviation = FourDigits(std::sqrt(variance / pixels));
    norm.mean.push_back(FourDigits(mean));
    norm.deviation.push_back(deviation > 0 ? deviation : 1);
  }
  return norm;
}

NormalizedPixels MakeNormalizedPixels(const Normalization& norm) {
  NormalizedPixels table(norm.mean.size());
  for (std::size_t channel = 0; channel < table.size(); ++channel) {
    const auto mean = static_cast<float>(norm.mean[channel]);
    const auto deviation = static_cast<float>(norm.deviation[channel]);
    for (int level = 0; level < 256; ++level) {
      // volatile: each step must be rounded; no excess precision, no fused operations.
      const volatile float unit = static_cast<float>(level) / 255.0F;
      const volatile float centred = unit - mean;
      table[channel][static_cast<std::size_t>(level)] = centred / deviation;
    }
  }
  return table;
}

void PrefetchImage(const LabelledImages& images, std::int64_t index) {
  constexpr std::int64_t kCacheLine = 64;
  const std::int64_t size = images.channels * images.height * images.width;
  const std::uint8_t* pixels = images.pixels.data() + index * size;
  for (std::int64_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(pixels + i);
}

void GatherImage(const LabelledImages& images, const NormalizedPixels& table, std::int64_t index,
                 const ImageVariation& variation, float* to) {
  const std::int64_t height = images.height;
  const std::int64_t width = images.width;
  const std::uint8_t* from = images.pixels.data() + index * images.channels * height * width;
  for (std::int64_t channel = 0; channel < images.channels; ++channel) {
    const std::array<float, 256>& levels = table[static_cast<std::size_t>(channel)];
    if (variation == ImageVariation{}) {
      LookUp(levels, from, height * width, to);
    } else {
      for (std::int64_t y = 0; y < height; ++y) {
        const std::int64_t source = y + variation.down;
        float* row = to + y * width;
        if (source >= 0 && source < height) {
          GatherRow(levels, from + source * width, width, variation, row);
        } else {
          std::fill(row, row + width, levels[0]);
        }
      }
    }
    from += height * width;
    to += height * width;
  }
}

namespace {

constexpr std::int64_t kColors = 3;
// Weights are integer multiples of 2^-22, as in Pillow (libImaging/Resample.c): their products with
// bytes sum up within 32 bits.
constexpr int kWeightBits = 22;

// The original's pixels that contribute to one pixel of the result.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

// For pixels `begin` to `begin` + `count` - 1 of a line resized from `from` to `to` pixels.
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
  // Rounded weights can push white above 255.
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

  // The rows needed for the square, already reduced to its width.
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
