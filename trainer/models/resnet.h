// ResNet-18, with a stem for small images or torchvision's.
#pragma once

#include "trainer/models/model_options.h"
#include "trainer/models/network.h"

namespace muster::trainer {

// torchvision's resnet18(num_classes=classes) (torchvision/models/resnet.py) for images with C
// channels. With ResNetStem::kSmall, two changes suit images of 28 or 32 pixels: conv1 is Conv2d(C,
// 64, 3, padding=1, bias=False), and no max-pooling follows it. Names (conv1, bn1, layer1.0.conv1,
// ..., fc), the order of creation and the initial values are torchvision's.
Network MakeResNet18(const ModelOptions& options);

}  // namespace muster::trainer
