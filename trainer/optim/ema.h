// The exponential moving average of a model's parameters.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/named_tensor.h"

namespace muster::trainer {

// An average of each parameter over the last steps, roughly 1 / (1 - decay) of them. It often tests
// better than the parameters themselves, which jump about from step to step. One thread.
class Ema {
 public:
  // Keeps the tensors of `parameters`; the averages start equal to them. `decay` is in (0, 1).
  Ema(const std::vector<NamedTensor>& parameters, double decay);

  // Sets the averages to the current parameters.
  void Restart();
  // Call this after each step of the optimizer: average = decay * average + (1 - decay) *
  // parameter.
  void Update();

  // Exchanges the parameters with their averages, in place. Call it before the averages are
  // evaluated or saved as the model, and again afterwards.
  void Swap();

  // The averages, named as their parameters. They share memory with this object.
  const std::vector<NamedTensor>& averages() const { return averages_; }

 private:
  const std::vector<NamedTensor> parameters_;
  const double decay_;
  std::vector<NamedTensor> averages_;
};

// Exchanges the parameters with their averages for as long as it lives. Does nothing without `ema`.
class EmaInPlace {
 public:
  // Calls `exchanged`, if there is one, after each exchange; it must not throw.
  explicit EmaInPlace(Ema* ema, std::function<void()> exchanged = nullptr)
      : ema_(ema), exchanged_(std::move(exchanged)) {
    Exchange();
  }
  ~EmaInPlace() { Exchange(); }
  EmaInPlace(const EmaInPlace&) = delete;
  EmaInPlace& operator=(const EmaInPlace&) = delete;

 private:
  void Exchange() {
    if (ema_ == nullptr) return;
    ema_->Swap();
    if (exchanged_) exchanged_();
  }

  Ema* const ema_;
  const std::function<void()> exchanged_;
};

}  // namespace muster::trainer
