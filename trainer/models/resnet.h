// ResNet-18, with a stem for small images or torchvision's.
#pragma once

#include "trainer/models/model_recipe.h"

namespace muster::trainer {

// torchvision's resnet18(num_classes=classes) (torchvision/models/resnet.py) for images with C
// channels. `stem` is the default of --stem, which chooses the layers before the first block:
// "imagenet", torchvision's, a 7 x 7 convolution and a pooling, which each halve the image and so
// take a twelfth of the computation; or "small", two changes for images of 28 or 32 pixels: conv1
// is Conv2d(C, 64, 3, padding=1, bias=False), and no max-pooling follows it. Names (conv1, bn1,
// layer1.0.conv1, ..., fc), the order of creation and the initial values are torchvision's.
ModelRecipe ResNet18Recipe(const char* stem = "small");

}  // namespace muster::trainer
