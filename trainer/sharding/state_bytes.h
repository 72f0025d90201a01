// How much memory training takes besides activations, by formula.
#pragma once

#include <cstdint>

namespace muster::trainer {

// What a rank keeps of parameters of K bytes when a backward pass has ended, with an optimizer that
// keeps `kept` numbers for each (AdamW 2, SGD with momentum 1) and d ranks that share. Rajbhandari
// et al., "ZeRO", SC 2020, section 5, of the same type throughout:
//
//   stage 0  K (2 + kept)              parameters, gradients, optimizer
//   stage 1  K (2 + kept / d)
//   stage 2  K (1 + (1 + kept) / d)
//   stage 3  K (2 + kept) / d
//
// Stage 3 needs the whole of a unit or two besides while it computes with them.
inline std::int64_t StateBytes(int stage, int ranks, std::int64_t parameter_bytes, int kept) {
  const int whole = stage == 0 ? 2 + kept : stage == 1 ? 2 : stage == 2 ? 1 : 0;
  return parameter_bytes * whole + parameter_bytes * (2 + kept - whole) / ranks;
}

}  // namespace muster::trainer
