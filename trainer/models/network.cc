#include "trainer/models/network.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm.h>

namespace muster::trainer {

at::Tensor LocalBatchNorm(const at::Tensor& input, const BatchNormParts& parts) {
  if (parts.training) parts.num_batches_tracked.add_(1);
  return at::batch_norm(input, parts.weight, parts.bias, parts.running_mean, parts.running_var,
                        parts.training, parts.momentum, parts.epsilon,
                        at::globalContext().userEnabledCuDNN());
}

}  // namespace muster::trainer
