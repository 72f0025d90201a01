// ResNet-18 for small images.
#pragma once

#include "trainer/models/model_options.h"
#include "trainer/models/network.h"

namespace muster::trainer {

// torchvision's resnet18(num_classes=classes) (torchvision/models/resnet.py) with the two changes
// that images of 28 or 32 pixels call for: conv1 is Conv2d(C, 64, 3, padding=1, bias=False), and
// there is no max-pooling after it. Names (conv1, bn1, layer1.0.conv1, ..., fc), the order of
// making and the initial values are torchvision's.
Network MakeResNet18(const ModelOptions& options);

}  // namespace muster::trainer
