#include "trainer/models/loss.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>

namespace muster::trainer {

at::Tensor CrossEntropySum(const at::Tensor& scores, const at::Tensor& targets) {
  // Half the bits are enough to train with, not to add up with.
  const bool half = scores.scalar_type() == at::kHalf || scores.scalar_type() == at::kBFloat16;
  return at::cross_entropy_loss((half ? scores.to(at::kFloat) : scores).flatten(0, -2),
                                targets.flatten(), /*weight=*/{}, at::Reduction::Sum);
}

std::int64_t CountPredictions(const at::Tensor& targets) {
  return targets.numel();
}

at::Tensor CountCorrect(const at::Tensor& scores, const at::Tensor& targets) {
  return scores.argmax(/*dim=*/-1).eq(targets).sum();
}

}  // namespace muster::trainer
