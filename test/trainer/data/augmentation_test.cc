#include "trainer/data/samples/sample_order.h"

#include <gtest/gtest.h>

#include <map>

namespace muster::trainer {
namespace {

TEST(AugmentationTest, NothingHappensUnlessAskedFor) {
  for (std::int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(VariationOf({.seed = 3}, 1, i), ImageVariation{});
}

// A run resumed by a newer program must see the same images.
TEST(AugmentationTest, VariationsStayWhatTheyWere) {
  const AugmentationOptions options{.flip = true, .crop_padding = 4, .seed = 1};
  EXPECT_EQ(VariationOf(options, 0, 0), (ImageVariation{true, -2, -2}));
  EXPECT_EQ(VariationOf(options, 0, 1), (ImageVariation{true, 1, -3}));
  EXPECT_EQ(VariationOf(options, 1, 0), (ImageVariation{true, 2, 3}));
  EXPECT_EQ(VariationOf(options, 7, 59999), (ImageVariation{true, 0, -4}));
}

TEST(AugmentationTest, FlippingDoesNotChangeHowImagesAreCut) {
  for (std::int64_t i = 0; i < 100; ++i) {
    ImageVariation both = VariationOf({.flip = true, .crop_padding = 2}, 5, i);
    const ImageVariation cut = VariationOf({.crop_padding = 2}, 5, i);
    both.mirrored = false;
    EXPECT_EQ(both, cut);
  }
}

TEST(AugmentationTest, EveryShiftAndBothSidesComeUpAboutEquallyOften) {
  constexpr int kImages = 90000;
  std::map<int, int> down;
  std::map<int, int> right;
  int mirrored = 0;
  for (std::int64_t i = 0; i < kImages; ++i) {
    const ImageVariation variation = VariationOf({.flip = true, .crop_padding = 4}, 0, i);
    ++down[variation.down];
    ++right[variation.right];
    mirrored += variation.mirrored ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, kImages / 2, 1000);
  for (const auto& counts : {down, right}) {
    ASSERT_EQ(counts.size(), 9u);
    EXPECT_EQ(counts.begin()->first, -4);
    for (const auto& [shift, count] : counts) EXPECT_NEAR(count, kImages / 9, 500) << shift;
  }
}

}  // namespace
}  // namespace muster::trainer
