// The update of an optimizer as one loop over plain numbers.
#pragma once

#include <cstdint>

namespace muster::trainer {

// torch.optim.SGD: g += weight_decay * p; m = momentum * m + g; then p -= lr * (nesterov ?
// g + momentum * m : m). `momenta` is null when momentum is 0, and is then not looked at.
struct SgdStep {
  double lr = 0;
  double weight_decay = 0;
  double momentum = 0;
  bool nesterov = false;
  bool first = false;  // the momentum does not exist yet: m = g
};
template <typename T>
void SgdOnePass(const SgdStep& step, std::int64_t count, T* parameters, const T* gradients,
                T* momenta);

// torch.optim.AdamW in its `number`-th step, the first being 1.
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

// Both exist for float and double. The arrays, of `count` elements, do not overlap. They keep to
// the calling thread; threads may work on parts of one parameter at once.

}  // namespace muster::trainer
