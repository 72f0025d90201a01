// Numbers about one moment of the training, for whoever plots them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::trainer {

struct Scalars {
  std::int64_t step = 0;    // steps done, over all epochs
  double unix_seconds = 0;  // when
  // Name and value in the order they are to be shown, such as {"train/loss", 0.51}.
  std::vector<std::pair<std::string, double>> values;
};

}  // namespace muster::trainer
