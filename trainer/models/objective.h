// What a training minimizes, and what it is measured by.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/models/tensor_layers.h"

namespace muster::trainer {

// The loss and the accuracy, for images and text alike.

// The cross entropy in nats, summed over all predictions: a scalar with gradient, of the type of
// `scores` (float32 for half and bfloat16). `scores`: B x K or B x T x K; `targets`: int64, B or B
// x T. An empty batch gives 0, still attached to the graph.
at::Tensor CrossEntropySum(const at::Tensor& scores, const at::Tensor& targets);

// The number of predictions for `targets`: B, or B * T.
std::int64_t CountPredictions(const at::Tensor& targets);

// The number of predictions whose highest score is at the target: an int64 scalar.
at::Tensor CountCorrect(const at::Tensor& scores, const at::Tensor& targets);

// The share of correct predictions, or another mean over predictions.
struct Metric {
  std::string name;  // "accuracy": test/accuracy in the metrics
  // Its sum over all predictions, a tensor of one number, left unread: reading would wait for a
  // GPU. `outputs` is the network's result, `targets` the data set's for the same samples, both on
  // the network's device. Called without gradients.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> sum;
  // Whether it is a share, which is shown in percent.
  bool is_share = true;
  // Instead of `sum`, for a metric that needs the batch's other tensors (Batch::others).
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets,
                           const std::vector<at::Tensor>& others)>
      sum_with = nullptr;

  at::Tensor SumOf(const at::Tensor& outputs, const at::Tensor& targets,
                   const std::vector<at::Tensor>& others) const {
    return sum_with ? sum_with(outputs, targets, others) : sum(outputs, targets);
  }
};

// The result of a metric.
struct MetricValue {
  std::string name;
  std::optional<double> value;  // the mean; nullopt if not measured
  bool is_share = true;
};

// "97.31 %", "0.0271" or "not measured".
std::string ValueText(const MetricValue& metric);

// Each element of a batch's targets is a prediction to be made. Means are over predictions: losses
// and metrics are summed over a rank's own samples, and divided by the predictions of all ranks.
struct Objective {
  // The sum of the loss over all predictions: a scalar with a gradient. Padding rows have been cut
  // off before. Must give 0, attached to the graph, for a batch without samples, as every sum does.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss =
      CrossEntropySum;
  std::vector<Metric> metrics = {{"accuracy", CountCorrect}};
  // Instead of `loss`, for one that needs the batch's other tensors (Batch::others), such as sample
  // weights. The mean is still over the elements of the targets.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets,
                           const std::vector<at::Tensor>& others)>
      loss_with = nullptr;

  at::Tensor LossOf(const at::Tensor& outputs, const at::Tensor& targets,
                    const std::vector<at::Tensor>& others) const {
    return loss_with ? loss_with(outputs, targets, others) : loss(outputs, targets);
  }
};

// The loss and the metrics of scores that are split over ranks.

// CrossEntropySum() of scores of which this rank has `part_of_scores`: ... x K / parts, padded to
// equal parts with -infinity, where K is `classes`. The ranks exchange three numbers per
// prediction, a maximum and two sums, and nothing in the backward pass. The same value on all
// ranks. Throws std::invalid_argument with one sentence if, on the CPU, a target is not a class.
at::Tensor SplitCrossEntropySum(const at::Tensor& part_of_scores, const at::Tensor& targets,
                                std::int64_t classes, TensorLinks& links);

// CountCorrect() of the same scores. Ties go to the first score in both. The ranks exchange a score
// and an index per prediction.
at::Tensor SplitCountCorrect(const at::Tensor& part_of_scores, const at::Tensor& targets,
                             TensorLinks& links);

// `objective` for a part of the scores: gives the same values on all ranks, and the right
// gradients. CrossEntropySum and CountCorrect work on parts; for any other function the scores are
// gathered first.
Objective ObjectiveOfParts(const Objective& objective, std::int64_t classes,
                           const std::shared_ptr<TensorLinks>& links);

}  // namespace muster::trainer
