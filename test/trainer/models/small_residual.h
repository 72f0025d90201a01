// A small network of what --qat folds and adds up, as a user might write it.
#pragma once

#include <cstdint>

#include "trainer/models/network.h"

namespace muster::trainer {

// Of images of `channels`, with an even number of lines and columns, 10 scores: convolutions with
// torch::nn::BatchNorm2d, one of them with a bias, a pooling, a residual block whose shortcut is
// the input ("block1"), one with a convolution in it ("block2"), an average and a Linear.
Network SmallResidual(std::int64_t channels);

}  // namespace muster::trainer
