#include "trainer/app/training/cadence.h"

#include <algorithm>

namespace muster::trainer {

void Cadence::OnAgreed(double seconds) {
  constexpr double kTarget = 0.25;  // seconds
  const std::int64_t most = 2 * interval_;
  // Also right when `seconds` is 0 or not a number.
  interval_ = seconds * static_cast<double>(most) < kTarget
                  ? most
                  : std::max<std::int64_t>(1, static_cast<std::int64_t>(kTarget / seconds));
}

}  // namespace muster::trainer
