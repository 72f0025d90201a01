// A data set made from nothing, for tests and for machines without one.
#pragma once

#include <cstdint>

#include "trainer/data/datasets/labelled_images.h"

namespace muster::trainer {

// Makes `count` grey images of 28 x 28 pixels in ten classes, with pixels of 8 x 8 blocks that
// depend on the class, shifted and noisy, so that a small model learns them within an epoch. The
// same `count` and `seed` give the same bytes everywhere.
LabelledImages GenerateImageSet(std::int64_t count, std::uint64_t seed);

}  // namespace muster::trainer
