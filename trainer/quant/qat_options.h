// How a training for 8-bit numbers goes, epoch by epoch.
#pragma once

#include <cstdint>

namespace muster::trainer {

struct QatOptions {
  bool on = false;
  // The first epochs, in which ranges are observed and nothing is rounded.
  std::int64_t observe_epochs = 1;
  // The epoch, counted from 0, from which ranges stay as they are; 0: the last third of all.
  std::int64_t freeze_epoch = 0;

  // The one of `epochs` in all, rounded up: a run of two never freezes.
  std::int64_t FreezeEpoch(std::int64_t epochs) const {
    return freeze_epoch > 0 ? freeze_epoch : epochs - epochs / 3;
  }
};

}  // namespace muster::trainer
