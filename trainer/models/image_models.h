// A small convolutional network, as in data-parallel tutorials.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/modules/container/sequential.h>

#include "trainer/models/network.h"
#include "trainer/models/recipe.h"

namespace muster::trainer {

// "cnn", the same network as this torch.nn.Sequential, for images of C x H x W:
//   Conv2d(C, 16, 3, padding=1), MaxPool2d(2), ReLU(), Conv2d(16, 32, 3, padding=1), MaxPool2d(2),
//   ReLU(), Flatten(), Linear(32 * (H // 4) * (W // 4), 128), ReLU(), Linear(128, classes)
ModelRecipe CnnRecipe();

// Fully connected networks: a small one, or one large enough for communication to matter.

// The same network as this torch.nn.Sequential, for hidden widths h1, h2, ...:
//   Flatten(), Linear(C * H * W, h1), ReLU(), Linear(h1, h2), ReLU(), ..., Linear(hn, classes)
ModelRecipe MlpRecipe(std::string name, std::vector<std::int64_t> hidden);

// ResNet-18, with a stem for small images or torchvision's.

// torchvision's resnet18(num_classes=classes) (torchvision/models/resnet.py) for images with C
// channels. `stem` is the default of --stem, which chooses the layers before the first block:
// "imagenet", torchvision's, a 7 x 7 convolution and a pooling, which each halve the image and so
// take a twelfth of the computation; or "small", two changes for images of 28 or 32 pixels: conv1
// is Conv2d(C, 64, 3, padding=1, bias=False), and no max-pooling follows it. Names (conv1, bn1,
// layer1.0.conv1, ..., fc), the order of creation and the initial values are torchvision's.
ModelRecipe ResNet18Recipe(const char* stem = "small");

// Networks of images with sequential layers.

// Each layer of `net`, none of which draws random numbers, becomes a stage.
Network NetworkOf(const torch::nn::Sequential& net);

}  // namespace muster::trainer
