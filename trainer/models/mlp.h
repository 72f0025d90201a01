// Fully connected layers: small, or as large as gradients have to be for communication to matter.
#pragma once

#include "trainer/models/model_options.h"
#include "trainer/models/network.h"

namespace muster::trainer {

// The network of this torch.nn.Sequential, for hidden widths h1, h2, ...:
//   Flatten(), Linear(C * H * W, h1), ReLU(), Linear(h1, h2), ReLU(), ..., Linear(hn, classes)
Network MakeMlp(const ModelOptions& options);

}  // namespace muster::trainer
