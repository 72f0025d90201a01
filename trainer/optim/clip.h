// Keeps single batches from throwing the training off its course.
#pragma once

#include <vector>

#include "trainer/named_tensor.h"

namespace muster::trainer {

// Scales all gradients by the same number so that their norm, as if they were one vector, is at
// most `max_norm`, and returns what it was before: torch.nn.utils.clip_grad_norm_(parameters,
// max_norm), bit for bit. Parameters without a gradient are passed over; 0 if none has one. A norm
// that is not finite makes the gradients NaN, as in Python; the caller can see it in what is
// returned. After DDP's averaging every rank computes the same.
double ClipGradientNorm(const std::vector<NamedTensor>& parameters, double max_norm);

}  // namespace muster::trainer
