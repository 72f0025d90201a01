// Optimizer updates, and a check for finite numbers, as single loops over raw arrays.
#pragma once

#include <cstdint>

namespace muster::trainer {

// torch.optim.SGD: g += weight_decay * p; m = momentum * m + g; then p -= lr * (nesterov ? g +
// momentum * m : m). `momenta` may be null when momentum is 0; it is then not used.
struct SgdStep {
  double lr = 0;
  double weight_decay = 0;
  double momentum = 0;
  bool nesterov = false;
  bool first = false;  // there is no momentum yet: m = g
};
template <typename T>
void SgdOnePass(const SgdStep& step, std::int64_t count, T* parameters, const T* gradients,
                T* momenta);

// Step `number` of torch.optim.AdamW, counted from 1.
struct AdamWStep {
  double lr = 0;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  std::int64_t number = 1;
};
template <typename T>
void AdamWOnePass(const AdamWStep& step, std::int64_t count, T* parameters, const T* gradients,
                  T* means, T* squares);

// A moving average: average += (1 - decay) * (parameter - average).
template <typename T>
void EmaOnePass(double decay, std::int64_t count, const T* parameters, T* averages);

// Whether no value is NaN or infinite.
template <typename T>
bool FiniteOnePass(std::int64_t count, const T* values);

// All functions are instantiated for float and double. Each array has `count` elements, and arrays
// must not overlap. The work is done on the calling thread; several threads may update different
// parts of one parameter at once.

}  // namespace muster::trainer
