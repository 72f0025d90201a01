// What a program of your own trains.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/data_options.h"
#include "trainer/data/dataset.h"
#include "trainer/flag_set.h"
#include "trainer/models/network.h"
#include "trainer/models/objective.h"

namespace muster::trainer {

// A model, its data and what it learns; the rest (ranks, checkpoints, optimizers, schedules,
// reports) is muster-train's. See ModelRecipe and DataRecipe for what each function has to do.
struct Recipe {
  std::string name = "model";  // in reports and checkpoints
  // What the samples are. kImages and kText have more flags: augmentation, tokenizers.
  DataShape::Kind kind = DataShape::Kind::kSamples;
  // Opens the data: options.paths are those of --data, options.test_paths those of --test-data.
  std::function<absl::StatusOr<Splits>(const DataOptions& options)> data;
  // Makes the network for data of this shape, with its initial parameters.
  std::function<absl::StatusOr<Network>(const DataShape& shape)> model;
  // The loss, summed; by default the cross entropy of classes, in nats.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss =
      Objective().loss;
  // By default the share of right classes. Each has a name of its own, and not one that reports
  // have anyway, such as "loss" or "step".
  std::vector<Metric> metrics = Objective().metrics;
  // Adds flags of the model; null: it has none.
  std::function<void(FlagSet& flags)> flags;
};

}  // namespace muster::trainer
