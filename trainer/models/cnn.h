// A small convolutional network, as in data-parallel tutorials.
#pragma once

#include "trainer/models/model_recipe.h"

namespace muster::trainer {

// "cnn", the same network as this torch.nn.Sequential, for images of C x H x W:
//   Conv2d(C, 16, 3, padding=1), MaxPool2d(2), ReLU(), Conv2d(16, 32, 3, padding=1), MaxPool2d(2),
//   ReLU(), Flatten(), Linear(32 * (H // 4) * (W // 4), 128), ReLU(), Linear(128, classes)
ModelRecipe CnnRecipe();

}  // namespace muster::trainer
