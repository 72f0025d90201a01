// The batch normalization layer.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "trainer/models/network.h"

namespace muster::trainer {

// What torch.nn.BatchNorm2d does: in training, uses the statistics of this rank's batch only.
at::Tensor LocalBatchNorm(const at::Tensor& input, const BatchNormParts& parts);

// torch.nn.BatchNorm2d, computed by the current value of `function`.
class BatchNorm : public torch::nn::Module {
 public:
  BatchNorm(std::int64_t channels, std::shared_ptr<const BatchNormFunction> function);

  // From N x C x H x W to the same. In training, updates the running statistics.
  at::Tensor Forward(const at::Tensor& x);

  const BatchNormParts& parts() const { return parts_; }

 private:
  const std::shared_ptr<const BatchNormFunction> function_;
  BatchNormParts parts_;
};

}  // namespace muster::trainer
