// Fully connected networks: a small one, or one large enough for communication to matter.
#pragma once

#include "trainer/models/model_options.h"
#include "trainer/models/network.h"

namespace muster::trainer {

// The same network as this torch.nn.Sequential, for hidden widths h1, h2, ...:
//   Flatten(), Linear(C * H * W, h1), ReLU(), Linear(h1, h2), ReLU(), ..., Linear(hn, classes)
Network MakeMlp(const ModelOptions& options);

}  // namespace muster::trainer
