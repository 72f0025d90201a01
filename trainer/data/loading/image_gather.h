// From bytes to normalized numbers: the inner loop of loading images.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trainer/data/datasets/labelled_images.h"
#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {

// What is taken out of the pixels of each channel, with pixels in [0, 1].
struct Normalization {
  std::vector<double> mean;
  std::vector<double> deviation;
};

// Mean and deviation of each channel over all of `images`, to four digits: what is published for
// MNIST (0.1307, 0.3081), Fashion-MNIST (0.2860, 0.3530) and CIFAR-10. A deviation of 0 is given
// as 1. `images` holds at least one.
Normalization MeasureNormalization(const LabelledImages& images);

// For each channel, what each of the 256 bytes becomes: (byte / 255 - mean) / deviation, rounded to
// float32 after each of the three steps, as torch does it. A table, because looking up is faster
// than dividing twice.
using NormalizedPixels = std::vector<std::array<float, 256>>;
NormalizedPixels MakeNormalizedPixels(const Normalization& norm);

// Has the memory begin to send image `index`, so that it is there when GatherImage comes to it.
// Images are drawn from anywhere in the data set, and waiting for each would double the time.
void PrefetchImage(const LabelledImages& images, std::int64_t index);

// Writes image `index` of `images`, varied by `variation`, to `to`, channels x height x width of
// them.
void GatherImage(const LabelledImages& images, const NormalizedPixels& table, std::int64_t index,
                 const ImageVariation& variation, float* to);

}  // namespace muster::trainer
