// Networks of images whose layers follow one another.
#pragma once

#include <torch/nn/modules/container/sequential.h>

#include "trainer/models/network.h"

namespace muster::trainer {

// Each layer of `net`, none of which draws random numbers, is a stage.
Network NetworkOf(const torch::nn::Sequential& net);

}  // namespace muster::trainer
