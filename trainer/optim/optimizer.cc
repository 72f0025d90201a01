#include "trainer/optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/optim/adamw.h"
#include "trainer/optim/sgd.h"

namespace muster::trainer {
namespace {

absl::Status Check(const OptimizerOptions& options) {
  const auto bad = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("make the optimizer: ", why...));
  };
  if (!(options.weight_decay >= 0)) {
    return bad("a weight decay of ", options.weight_decay, ", which must be at least 0");
  }
  if (options.kind == OptimizerKind::kSgd) {
    if (!(options.momentum >= 0)) {
      return bad("a momentum of ", options.momentum, ", which must be at least 0");
    }
    if (options.nesterov && options.momentum == 0)
      return bad("Nesterov momentum needs a momentum above 0");
    return absl::OkStatus();
  }
  for (const double beta : {options.beta1, options.beta2}) {
    if (!(beta >= 0 && beta < 1)) {
      return bad("a beta of ", beta, ", which must be at least 0 and below 1");
    }
  }
  if (!(options.epsilon >= 0)) {
    return bad("an epsilon of ", options.epsilon, ", which must be at least 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         std::vector<NamedTensor> parameters) {
  const absl::Status checked = Check(options);
  if (!checked.ok()) return checked;
  if (std::none_of(parameters.begin(), parameters.end(),
                   [](const NamedTensor& one) { return one.tensor.requires_grad(); })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "make the optimizer: none of the model's ", parameters.size(),
        " parameters requires a gradient, so there is nothing to learn; register parameters, or "
        "leave some of them unfrozen (requires_grad)"));
  }
  return MakePartOptimizer(options, std::move(parameters));
}

std::unique_ptr<Optimizer> MakePartOptimizer(const OptimizerOptions& options,
                                             std::vector<NamedTensor> parameters) {
  if (options.kind == OptimizerKind::kSgd) {
    return std::make_unique<Sgd>(options, std::move(parameters));
  }
  return std::make_unique<AdamW>(options, std::move(parameters));
}

}  // namespace muster::trainer
