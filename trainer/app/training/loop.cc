#include "trainer/app/training/loop.h"

#include <algorithm>

namespace muster::trainer {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

absl::Status SaveCheckpoint(Loop& loop) {
  const absl::Status logged = loop.job.leads() ? loop.reporter->Flush() : absl::OkStatus();
  return logged.ok() ? loop.saver.Save(loop.strategy, loop.state, loop.learning_rate()) : logged;
}

std::int64_t TotalSteps(const Options& options, const TrainState& state) {
  std::int64_t total = state.step;
  if (state.epoch < options.epochs) {
    const std::int64_t left = state.dataset_size - state.position;
    total += CeilDiv(left, state.batch_size) +
             (options.epochs - state.epoch - 1) * CeilDiv(state.dataset_size, state.batch_size);
  }
  return options.max_steps > 0 ? std::min(total, std::max(options.max_steps, state.step)) : total;
}

}  // namespace muster::trainer
