// Measures how much arithmetic a training takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <ATen/record_function.h>

namespace muster::trainer {

// Counts the floating point operations of matrix products, convolutions and LibTorch's own
// attention, forward and backward, on all threads of this process during its lifetime: a
// multiplication and an addition are two. Everything else, which is negligible, is left out, as in
// PyTorch's FlopCounterMode, whose formulas these are (torch/utils/flop_counter.py); so attention
// counts as if it had no mask. One instance at a time.
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

// The peak arithmetic of GPUs.

// The number format of a multiplication.
enum class Multiplies { kHalf, kTf32, kFloat, kDouble };  // kHalf: float16 or bfloat16

// "bfloat16 or float16", "TensorFloat-32", "float32", "float64".
const char* MultipliesName(Multiplies kind);

// Dense multiplications and additions per second, by the data sheet of the GPU that NVML calls
// `name` ("NVIDIA H100 80GB HBM3"); nullopt for an unknown GPU, or one without such units.
std::optional<double> PeakFlops(std::string_view name, Multiplies kind);

}  // namespace muster::trainer
