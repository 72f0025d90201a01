#include "trainer/data/samples/image_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "test/trainer/encoded.h"

namespace muster::trainer {
namespace {

using Square = std::vector<std::uint8_t>;

// FNV-1a.
std::uint64_t Hash(const Square& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

// The mean of the pixels around (y, x) of a square of `side` pixels, with triangular weights, in
// two dimensions at once and without rounding.
double Reference(const RgbImage& image, std::int64_t side, std::int64_t y, std::int64_t x,
                 std::int64_t color) {
  const auto shorter = static_cast<double>(std::min(image.height, image.width));
  const double scale = shorter / static_cast<double>(side);
  const double reach = std::max(1.0, scale);
  double sum = 0;
  double weights = 0;
  for (std::int64_t v = 0; v < image.height; ++v) {
    for (std::int64_t u = 0; u < image.width; ++u) {
      const double down =
          std::abs(static_cast<double>(v) + 0.5 - (static_cast<double>(y) + 0.5) * scale) / reach;
      const double across =
          std::abs(static_cast<double>(u) + 0.5 - (static_cast<double>(x) + 0.5) * scale) / reach;
      const double weight = std::max(0.0, 1 - down) * std::max(0.0, 1 - across);
      weights += weight;
      sum += weight * image.pixels[static_cast<std::size_t>((v * image.width + u) * 3 + color)];
    }
  }
  return sum / weights;
}

// The results of Pillow 9.4 with torchvision's arithmetic for PatternImage: Resize(side),
// CenterCrop(side).
TEST(ResizeTest, SquaresAreTorchvisionsBitForBit) {
  EXPECT_EQ(ResizedSquare(PatternImage(5, 7), 3),
            (Square{108, 69,  82,  126, 133, 138, 123, 111, 154, 86,  70,  85, 90, 107,
                    85,  163, 111, 96,  117, 151, 220, 120, 160, 105, 112, 93, 36}));
  EXPECT_EQ(ResizedSquare(PatternImage(2, 3), 4),
            (Square{59, 177, 197, 118, 73,  164, 172, 98, 101, 137, 123, 57,  115, 124, 98,  37,
                    67, 108, 114, 85,  81,  95,  89,  65, 110, 68,  40,  25,  124, 55,  15,  5,
                    76, 39,  31,  53,  106, 74,  70,  97, 166, 143, 149, 185, 196, 177, 188, 229}));
  struct Case {
    std::int64_t height;
    std::int64_t width;
    std::int64_t side;
    std::uint64_t hash;
  };
  for (const Case& c : std::vector<Case>{{61, 47, 16, 0x0cbcdc174ea0b3e2},
                                         {300, 200, 64, 0xb7102ae0c7dd4b00},
                                         {31, 30, 100, 0x059a6b178eea944f},
                                         {200, 333, 199, 0x0f243370421ca86c},
                                         {1, 500, 3, 0x5955ab4100c3248c},
                                         {40, 40, 40, 0xe34c4c3a4ce10575}}) {
    EXPECT_EQ(Hash(ResizedSquare(PatternImage(c.height, c.width), c.side)), c.hash)
        << c.height << " x " << c.width << " to " << c.side;
  }
}

TEST(ResizeTest, PixelsAreMeansUnderATriangle) {
  for (const std::int64_t side : {7, 24, 40}) {
    const RgbImage image = PatternImage(24, 24);
    const Square square = ResizedSquare(image, side);
    for (std::int64_t i = 0; i < 3 * side * side; ++i) {
      const std::int64_t y = i / side % side;
      EXPECT_NEAR(square[static_cast<std::size_t>(i)],
                  Reference(image, side, y, i % side, i / (side * side)), 1.01);
    }
  }
}

TEST(ResizeTest, WhiteStaysWhiteAndTheMiddleIsTaken) {
  EXPECT_EQ(ResizedSquare(PlainImage(123, 77, 255, 255, 255), 19), Square(3 * 19 * 19, 255));
  // Black, with white from the third to the fourth column.
  RgbImage image = PlainImage(2, 6, 0, 0, 0);
  for (const std::size_t at : {2, 3, 8, 9}) std::fill_n(image.pixels.begin() + at * 3, 3, 255);
  EXPECT_EQ(ResizedSquare(image, 2), Square(12, 255));
}

}  // namespace
}  // namespace muster::trainer
