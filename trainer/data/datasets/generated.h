// Generated images, for tests and for machines without a data set.
#pragma once

#include <cstdint>

#include "trainer/data/datasets/labelled_images.h"

namespace muster::trainer {

// Generates `count` grey images of 28 x 28 pixels in ten classes. Each class is a pattern of 8 x 8
// pixel blocks, which is shifted and made noisy, so a small model learns them within an epoch. The
// same `count` and `seed` give the same bytes on every machine.
LabelledImages GenerateImageSet(std::int64_t count, std::uint64_t seed);

}  // namespace muster::trainer
