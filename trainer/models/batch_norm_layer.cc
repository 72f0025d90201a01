#include "trainer/models/batch_norm_layer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace muster::trainer {

at::Tensor LocalBatchNorm(const at::Tensor& input, const BatchNormParts& parts) {
  if (parts.training) parts.num_batches_tracked.add_(1);
  return at::batch_norm(input, parts.weight, parts.bias, parts.running_mean, parts.running_var,
                        parts.training, parts.momentum, parts.epsilon,
                        at::globalContext().userEnabledCuDNN());
}

BatchNorm::BatchNorm(std::int64_t channels, std::shared_ptr<const BatchNormFunction> function)
    : function_(std::move(function)) {
  parts_.weight = register_parameter("weight", at::ones({channels}));
  parts_.bias = register_parameter("bias", at::zeros({channels}));
  parts_.running_mean = register_buffer("running_mean", at::zeros({channels}));
  parts_.running_var = register_buffer("running_var", at::ones({channels}));
  parts_.num_batches_tracked =
      register_buffer("num_batches_tracked", at::scalar_tensor(0, at::kLong));
}

at::Tensor BatchNorm::Forward(const at::Tensor& x) {
  parts_.training = is_training();
  return (*function_)(x, parts_);
}

}  // namespace muster::trainer
