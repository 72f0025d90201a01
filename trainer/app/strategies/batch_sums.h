// Measures a model on a batch.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/app/options/options.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loading/batch_loader.h"
#include "trainer/models/model.h"

namespace muster::trainer {

// Sums over the predictions of a rank's own samples. Tensors hold one number each, of any type, on
// the rank's device, for which nobody has waited.
struct BatchSums {
  double predictions = 0;  // their number
  at::Tensor loss;
  std::vector<at::Tensor> metrics;  // those of the model's objective, in their order
};

// The sums of `batch`. `model` is on `device`, and in evaluation mode. Throws what LibTorch throws.
BatchSums MeasureBatch(const LoadedBatch& batch, const Options& options, const at::Device& device,
                       Model& model);

// The same of whatever computes scores of inputs.
BatchSums MeasureScores(const LoadedBatch& batch, const Options& options, const at::Device& device,
                        const std::function<at::Tensor(const at::Tensor& inputs)>& compute);

// `batch` on `device`, where it may be already, as the model needs it: real numbers converted to
// `dtype`, whole ones unchanged.
Batch MovedTo(const Batch& batch, const at::Device& device, c10::ScalarType dtype);

}  // namespace muster::trainer
