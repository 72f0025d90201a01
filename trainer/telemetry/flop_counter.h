// How much arithmetic a training takes.
#pragma once

#include <cstdint>

#include <ATen/record_function.h>

namespace muster::trainer {

// Counts the floating point operations of matrix products, convolutions and LibTorch's own
// attention, forward and backward, of all threads of this process while it lives: a multiplication
// and an addition are two. All else, which takes next to none, is left out, as PyTorch's
// FlopCounterMode does, whose formulas these are (torch/utils/flop_counter.py); so attention counts
// as if it had no mask. One at a time.
class FlopCounter {
 public:
  FlopCounter();
  ~FlopCounter();
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  // So far.
  std::int64_t flops() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace muster::trainer
