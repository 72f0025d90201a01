// What a training makes small, and what it is measured by.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/models/loss.h"

namespace muster::trainer {

// A share of right predictions, or another mean over predictions.
struct Metric {
  std::string name;  // "accuracy": test/accuracy in the metrics
  // Its sum over all predictions, a tensor of one number, which need not be read: a GPU would have
  // to be waited for. `outputs` is what the network returned, `targets` what the data set holds for
  // the same samples, both on the network's device. Called without gradients.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> sum;
  // Whether it is a share, which is shown in percent.
  bool is_share = true;
};

// What a metric came to.
struct MetricValue {
  std::string name;
  std::optional<double> value;  // the mean; nullopt when it was not measured
  bool is_share = true;
};

// "97.31 %", "0.0271" or "not measured".
std::string ValueText(const MetricValue& metric);

// Each element of a batch's targets is a prediction to be made. Means are over predictions: losses
// and metrics are summed over a rank's own samples, and divided by the predictions of all ranks.
struct Objective {
  // The sum of the loss over all predictions: a scalar with a gradient. Rows that do not count are
  // cut off before. Must give 0, attached to the graph, for a batch without samples, as every sum
  // does.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss =
      CrossEntropySum;
  std::vector<Metric> metrics = {{"accuracy", CountCorrect}};
};

}  // namespace muster::trainer
