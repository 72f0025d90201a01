#include "trainer/optim/loss_scaler.h"

#include <algorithm>

namespace muster::trainer {
namespace {

// Losses are of float32: a larger factor makes the smallest of them infinite.
constexpr double kMostScale = 0x1p127;

}  // namespace

LossScaler::LossScaler(double scale, std::int64_t window)
    : window_(window), least_(std::min(scale, 1.0)), state_{.scale = scale} {}

void LossScaler::Update(bool finite) {
  if (!finite) {
    state_ = {.scale = std::max(state_.scale / 2, least_)};
  } else if (++state_.steps_since >= window_) {
    state_ = {.scale = std::min(state_.scale * 2, kMostScale)};
  }
}

}  // namespace muster::trainer
