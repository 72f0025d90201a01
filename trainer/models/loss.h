// What is minimized and what is counted, for scores of images and of text alike.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The sum, over every prediction, of the cross entropy in nats: a scalar of the type of `scores`
// (float32 when that has half the bits), with gradient. `scores`: B x K, or B x T x K; `targets`:
// int64, B, or B x T. An empty batch gives 0, still part of the graph.
at::Tensor CrossEntropySum(const at::Tensor& scores, const at::Tensor& targets);

// How many predictions `targets` stands for: B, or B * T.
std::int64_t CountPredictions(const at::Tensor& targets);

// How many of them have the highest score at the target.
std::int64_t CountCorrect(const at::Tensor& scores, const at::Tensor& targets);

}  // namespace muster::trainer
