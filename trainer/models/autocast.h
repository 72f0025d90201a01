// Half the bits where half the bits will do.
#pragma once

namespace muster::trainer {

// While one exists, operators of this thread that gain from it (convolutions, products of matrices)
// compute in bfloat16 on the CPU or the GPU, and the others in float32: torch.autocast with
// dtype=torch.bfloat16. Parameters and gradients stay float32. Weights that were cast are kept
// until the scope ends, so it spans one forward pass and its loss, and not the optimizer's step.
class Bf16Autocast {
 public:
  // Does nothing unless `enabled`. `cuda`: where the tensors are.
  Bf16Autocast(bool enabled, bool cuda);
  ~Bf16Autocast();
  Bf16Autocast(const Bf16Autocast&) = delete;
  Bf16Autocast& operator=(const Bf16Autocast&) = delete;

 private:
  const bool enabled_;
  const bool cuda_;
};

}  // namespace muster::trainer
