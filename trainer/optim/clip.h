// Gradient clipping, so that one bad batch cannot derail the training.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/named_tensor.h"

namespace muster::trainer {

// Scales all gradients by one factor so that their joint 2-norm is at most `max_norm`, and returns
// the norm before scaling, one number that nobody has waited for:
// torch.nn.utils.clip_grad_norm_(parameters, max_norm), bit for bit. Skips parameters without a
// gradient; returns 0 if none has one. As in Python, a NaN norm makes all gradients NaN, and an
// infinite norm turns finite gradients into 0 and infinite ones into NaN; the caller can tell from
// the returned norm. After DDP has averaged the gradients, every rank gets the same result.
at::Tensor ClipGradientNorm(const std::vector<NamedTensor>& parameters, double max_norm);

}  // namespace muster::trainer
