// Named numbers at one step of the training, to be logged or plotted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::trainer {

struct Scalars {
  std::int64_t step = 0;    // steps done, over all epochs
  double unix_seconds = 0;  // when
  // Names and values in display order, such as {"train/loss", 0.51}.
  std::vector<std::pair<std::string, double>> values;
};

}  // namespace muster::trainer
