#include "trainer/data/loading/image_gather.h"

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
  // Eight bytes read as one number, and taken from it: half again as fast as reading each by
  // itself.
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

// One row of an image, moved left by `right` and mirrored; black where it has no pixels.
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
      // Each step is stored: nothing may be kept at a higher precision or joined with another.
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

}  // namespace muster::trainer
