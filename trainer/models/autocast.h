// Mixed precision: bfloat16 where it is enough.
#pragma once

namespace muster::trainer {

// While one exists, operators on this thread that benefit (convolutions, matrix products) compute
// in bfloat16 on the CPU or the GPU, and the others in float32, as under torch.autocast with
// dtype=torch.bfloat16. Parameters and gradients stay float32. Cast weights are cached until the
// scope ends, so it must cover one forward pass and its loss, but not the optimizer's step.
class Bf16Autocast {
 public:
  // Does nothing unless `enabled`. `cuda`: whether the tensors are on a GPU.
  Bf16Autocast(bool enabled, bool cuda);
  ~Bf16Autocast();
  Bf16Autocast(const Bf16Autocast&) = delete;
  Bf16Autocast& operator=(const Bf16Autocast&) = delete;

 private:
  const bool enabled_;
  const bool cuda_;
};

}  // namespace muster::trainer
