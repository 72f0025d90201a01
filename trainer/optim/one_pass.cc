#include "trainer/optim/one_pass.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace muster::trainer {
namespace {

// One loop per combination of optimizer options, so that its body has no conditions and can be
// vectorized.
template <typename T, bool kMomentum, bool kNesterov, bool kFirst>
void Sgd(const SgdStep& step, std::int64_t count, T* __restrict parameters,
         const T* __restrict gradients, T* __restrict momenta) {
  const auto lr = static_cast<T>(step.lr);
  const auto decay = static_cast<T>(step.weight_decay);
  const auto momentum = static_cast<T>(step.momentum);
  for (std::int64_t i = 0; i < count; ++i) {
    T direction = gradients[i] + decay * parameters[i];
    if constexpr (kMomentum) {
      const T moved = kFirst ? direction : momentum * momenta[i] + direction;
      momenta[i] = moved;
      direction = kNesterov ? direction + momentum * moved : moved;
    }
    parameters[i] -= lr * direction;
  }
}

}  // namespace

template <typename T>
void SgdOnePass(const SgdStep& step, std::int64_t count, T* parameters, const T* gradients,
                T* momenta) {
  if (step.momentum == 0) {
    Sgd<T, false, false, false>(step, count, parameters, gradients, momenta);
  } else if (step.nesterov) {
    step.first ? Sgd<T, true, true, true>(step, count, parameters, gradients, momenta)
               : Sgd<T, true, true, false>(step, count, parameters, gradients, momenta);
  } else {
    step.first ? Sgd<T, true, false, true>(step, count, parameters, gradients, momenta)
               : Sgd<T, true, false, false>(step, count, parameters, gradients, momenta);
  }
}

template <typename T>
void AdamWOnePass(const AdamWStep& step, std::int64_t count, T* parameters, const T* gradients,
                  T* means, T* squares) {
  // Values that depend only on the step are computed once, in double as in Python.
  const auto number = static_cast<double>(step.number);
  const double correction1 = 1 - std::pow(step.beta1, number);
  const double correction2 = 1 - std::pow(step.beta2, number);
  const auto keep = static_cast<T>(1 - step.lr * step.weight_decay);
  const auto rate = static_cast<T>(step.lr / correction1);
  const auto root = static_cast<T>(std::sqrt(correction2));
  const auto beta1 = static_cast<T>(step.beta1);
  const auto beta2 = static_cast<T>(step.beta2);
  const auto rest1 = static_cast<T>(1 - step.beta1);
  const auto rest2 = static_cast<T>(1 - step.beta2);
  const auto epsilon = static_cast<T>(step.epsilon);
  T* __restrict p = parameters;
  const T* __restrict g = gradients;
  T* __restrict m = means;
  T* __restrict v = squares;
  for (std::int64_t i = 0; i < count; ++i) {
    const T mean = beta1 * m[i] + rest1 * g[i];
    const T square = beta2 * v[i] + rest2 * g[i] * g[i];
    m[i] = mean;
    v[i] = square;
    p[i] = keep * p[i] - rate * mean / (std::sqrt(square) / root + epsilon);
  }
}

template <typename T>
void EmaOnePass(double decay, std::int64_t count, const T* parameters, T* averages) {
  const auto rest = static_cast<T>(1 - decay);
  const T* __restrict p = parameters;
  T* __restrict a = averages;
  for (std::int64_t i = 0; i < count; ++i) a[i] += rest * (p[i] - a[i]);
}

// Integers, because their sums can be reordered, and so vectorized. An exponent of all ones means
// not finite; adding one carries over into the sign.
template <typename T>
bool FiniteOnePass(std::int64_t count, const T* values) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kFraction = sizeof(T) == 4 ? 23 : 52;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  constexpr Bits kOne = Bits{1} << kFraction;  // of the exponent
  constexpr Bits kExponent = kSign - kOne;
  Bits all = 0;
  for (std::int64_t i = 0; i < count; ++i)
    all |= (std::bit_cast<Bits>(values[i]) & kExponent) + kOne;
  return (all & kSign) == 0;
}

template void EmaOnePass(double, std::int64_t, const float*, float*);
template void EmaOnePass(double, std::int64_t, const double*, double*);
template bool FiniteOnePass(std::int64_t, const float*);
template bool FiniteOnePass(std::int64_t, const double*);
template void SgdOnePass(const SgdStep&, std::int64_t, float*, const float*, float*);
template void SgdOnePass(const SgdStep&, std::int64_t, double*, const double*, double*);
template void AdamWOnePass(const AdamWStep&, std::int64_t, float*, const float*, float*, float*);
template void AdamWOnePass(const AdamWStep&, std::int64_t, double*, const double*, double*,
                           double*);

}  // namespace muster::trainer
