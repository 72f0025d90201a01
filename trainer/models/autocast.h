// Mixed precision: bfloat16 or float16 where it is enough.
#pragma once

#include <optional>

#include <c10/core/ScalarType.h>

namespace muster::trainer {

// While one exists, operators on this thread that benefit (convolutions, matrix products) compute
// in `type` on the CPU or the GPU, and the others in float32, as under torch.autocast with that
// dtype. Parameters and gradients stay float32. Cast weights are cached until the scope ends, so it
// must cover one forward pass and its loss, but not the optimizer's step. Within another one, that
// one continues afterwards.
class Autocast {
 public:
  // Does nothing without a `type`, which is bfloat16 or, on a GPU, float16. `cuda`: whether the
  // tensors are on a GPU.
  Autocast(std::optional<c10::ScalarType> type, bool cuda);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const std::optional<c10::ScalarType> type_;
  const bool cuda_;
  const std::optional<c10::ScalarType> before_;
};

// The type that this thread's operators compute in, on a GPU or the CPU; nullopt: autocast is off.
std::optional<c10::ScalarType> AutocastOf(bool cuda);

// While one exists, cast weights of this thread are neither cached nor taken from the cache.
class UncachedCasts {
 public:
  UncachedCasts();
  ~UncachedCasts();
  UncachedCasts(const UncachedCasts&) = delete;
  UncachedCasts& operator=(const UncachedCasts&) = delete;

 private:
  const bool before_;
};

}  // namespace muster::trainer
