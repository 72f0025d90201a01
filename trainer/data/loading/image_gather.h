// Converts bytes to normalized floats: the inner loop of loading images.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trainer/data/data_facts.h"
#include "trainer/data/datasets/labelled_images.h"
#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {

// Mean and standard deviation of each channel over all `images`, rounded to four decimals: the
// published values for MNIST (0.1307, 0.3081), Fashion-MNIST (0.2860, 0.3530) and CIFAR-10. A
// deviation of 0 becomes 1. `images` must not be empty.
Normalization MeasureNormalization(const LabelledImages& images);

// For each channel, the value of each of the 256 bytes: (byte / 255 - mean) / deviation, rounded to
// float32 after each of the three operations, as in torch. A table, because a lookup is faster than
// two divisions.
using NormalizedPixels = std::vector<std::array<float, 256>>;
NormalizedPixels MakeNormalizedPixels(const Normalization& norm);

// Prefetches image `index` into the cache for a later GatherImage. Images are read in random order,
// and cache misses would double the time.
void PrefetchImage(const LabelledImages& images, std::int64_t index);

// Applies `variation` to image `index`, normalizes it with `table`, and writes its channels x
// height x width values to `to`.
void GatherImage(const LabelledImages& images, const NormalizedPixels& table, std::int64_t index,
                 const ImageVariation& variation, float* to);

}  // namespace muster::trainer
