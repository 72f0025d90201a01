// The loss and the accuracy, for images and text alike.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The cross entropy in nats, summed over all predictions: a scalar with gradient, of the type of
// `scores` (float32 for half and bfloat16). `scores`: B x K or B x T x K; `targets`: int64, B or B
// x T. An empty batch gives 0, still attached to the graph.
at::Tensor CrossEntropySum(const at::Tensor& scores, const at::Tensor& targets);

// The number of predictions for `targets`: B, or B * T.
std::int64_t CountPredictions(const at::Tensor& targets);

// The number of predictions whose highest score is at the target: an int64 of no dimension.
at::Tensor CountCorrect(const at::Tensor& scores, const at::Tensor& targets);

}  // namespace muster::trainer
