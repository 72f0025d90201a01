#include "trainer/quant/qat_run.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

#include "trainer/comm/wait_clock.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kSamples = 256;
constexpr std::size_t kTimes = 31;
constexpr std::chrono::seconds kEnough(1);

std::shared_ptr<QatNetwork> NetworkIn(const std::shared_ptr<torch::nn::Module>& module) {
  auto network = std::dynamic_pointer_cast<QatNetwork>(module);
  if (!network) throw std::invalid_argument("the model is not prepared for --qat");
  return network;
}

// The median of several runs, in milliseconds: as many as there is time for.
template <typename Function>
double MedianMs(const Function& function) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const Clock::time_point first = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    function();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  } while (times.size() < kTimes && Clock::now() - first < kEnough);
  if (times.size() > 1) times.erase(times.begin());  // it was slower than the others will be
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

QatRun::QatRun(std::shared_ptr<torch::nn::Module> module, const QatOptions& options,
               std::int64_t epochs, Group& group)
    : network_(NetworkIn(module)), options_(options), epochs_(epochs), group_(group) {}

QatPhase QatRun::PhaseOf(std::int64_t epoch) const {
  if (epoch < options_.observe_epochs) return QatPhase::kObserve;
  return epoch < options_.FreezeEpoch(epochs_) ? QatPhase::kRound : QatPhase::kFrozen;
}

void QatRun::BeginEpoch(std::int64_t epoch) {
  phase_ = PhaseOf(epoch);
  network_->SetPhase(phase_);
}

void QatRun::AfterStep() {
  if (phase_ == QatPhase::kFrozen) return;
  const at::NoGradGuard no_grad;
  // One exchange for all: the greatest is the least of the negatives.
  std::vector<at::Tensor> ends;
  for (const auto& one : network_->activations()) {
    ends.push_back(one->min_val());
    ends.push_back(one->max_val().neg());
  }
  std::vector<at::Tensor> all = {at::stack(ends)};
  if (group_.size() > 1) {
    c10d::AllreduceOptions least;
    least.reduceOp = c10d::ReduceOp::MIN;
    const WaitScope waits;
    group_.Backend(Use::kOther)->allreduce(all, least)->wait();
  }
  // One process alone does so, too: while nothing is rounded, LibTorch's operator derives no scale.
  std::int64_t next = 0;
  for (const auto& one : network_->activations()) {
    one->SetRange(all[0][next], all[0][next + 1].neg());
    next += 2;
  }
}

std::unique_ptr<Int8Network> QatRun::Convert() const {
  return network_->observed() ? std::make_unique<Int8Network>(*network_) : nullptr;
}

std::string CompareInference(QatNetwork& network, const Int8Network& int8,
                             const std::vector<std::int64_t>& sample) {
  const at::NoGradGuard no_grad;
  std::vector<std::int64_t> sizes = sample;
  sizes.insert(sizes.begin(), kSamples);
  const at::Tensor inputs = at::rand(sizes, at::kFloat);
  const double float_ms = MedianMs([&] { network.FloatForward(inputs); });
  const double int8_ms = MedianMs([&] { int8.Forward(inputs); });
  return absl::StrFormat(
      "int8: weights of %d bytes instead of %d; %d samples in %.3f ms instead of %.3f",
      network.int8_bytes(), network.float_bytes(), kSamples, int8_ms, float_ms);
}

}  // namespace muster::trainer
