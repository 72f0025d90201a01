#include "trainer/models/guarded.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::trainer {
namespace {

// Built-in entries of reports about a test: eval --json, and test/loss.
constexpr const char* kTaken[] = {"bits_per_byte", "bits_per_token", "checkpoint", "data", "loss",
                                  "model",         "perplexity",     "samples",    "step"};

absl::Status BadRecipe(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("read the recipe: ", why));
}

bool IsShowable(const std::string& name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

absl::Status CheckMetrics(const Recipe& recipe) {
  std::set<std::string> names;
  for (const Metric& metric : recipe.metrics) {
    if (!IsShowable(metric.name)) {
      return BadRecipe("a metric's name is empty or has control characters");
    }
    if (!metric.sum && !metric.sum_with) {
      return BadRecipe(absl::StrCat("metric '", metric.name, "' has no function (Metric::sum)"));
    }
    if (std::count(std::begin(kTaken), std::end(kTaken), metric.name) > 0) {
      return BadRecipe(absl::StrCat("a metric is called '", metric.name,
                                    "', as something else in reports is; give it another name "
                                    "than ",
                                    absl::StrJoin(kTaken, ", ")));
    }
    if (!names.insert(metric.name).second) {
      return BadRecipe(absl::StrCat("two metrics are called '", metric.name, "'"));
    }
  }
  return absl::OkStatus();
}

// Calls `function`, and prefixes the first line of its exceptions with `whose`.
template <typename Function>
auto InNameOf(const std::string& whose, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(absl::StrCat(whose, ": ", error.what()));
  } catch (const std::exception& error) {
    throw std::runtime_error(absl::StrCat(whose, ": ", error.what()));
  } catch (...) {
    throw std::runtime_error(
        absl::StrCat(whose, ": it threw something other than a std::exception"));
  }
}

// A data set of the recipe.
class GuardedDataset : public Dataset {
 public:
  GuardedDataset(std::string whose, std::shared_ptr<const Dataset> dataset)
      : whose_(std::move(whose)), dataset_(std::move(dataset)) {}

  std::int64_t size() const override {
    return InNameOf(whose_, [this] { return dataset_->size(); });
  }
  DataShape shape() const override {
    return InNameOf(whose_, [this] { return dataset_->shape(); });
  }
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override {
    return InNameOf(whose_, [&] { return dataset_->Gather(indices, epoch, train); });
  }

 private:
  const std::string whose_;
  const std::shared_ptr<const Dataset> dataset_;
};

std::shared_ptr<const Dataset> GuardDataset(const std::string& whose,
                                            std::shared_ptr<const Dataset> dataset) {
  // The code that opens it reports that it is missing.
  if (dataset == nullptr) return nullptr;
  return std::make_shared<GuardedDataset>(whose, std::move(dataset));
}

// Returns `sum` if it is a single number.
at::Tensor OneNumber(at::Tensor sum) {
  if (!sum.defined()) throw std::invalid_argument("it returned no tensor");
  if (sum.numel() == 1) return sum;
  throw std::invalid_argument(
      absl::StrCat("it returned ", sum.numel(), " numbers, and must return one, their sum"));
}

// Restores the state of random numbers, so that the check changes nothing.
class KeepsRandomNumbers {
 public:
  explicit KeepsRandomNumbers(const at::Device& device)
      : generator_(at::globalContext().defaultGenerator(device)), state_(generator_.get_state()) {}
  ~KeepsRandomNumbers() { generator_.set_state(state_); }
  KeepsRandomNumbers(const KeepsRandomNumbers&) = delete;
  KeepsRandomNumbers& operator=(const KeepsRandomNumbers&) = delete;

 private:
  at::Generator generator_;
  const at::Tensor state_;
};

using Tensors = std::vector<at::Tensor>;

using SumOf = std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets,
                                       const Tensors& others)>;

Tensors Twice(const Tensors& tensors) {
  Tensors twice;
  for (const at::Tensor& tensor : tensors) twice.push_back(at::cat({tensor, tensor}));
  return twice;
}

// Checks once that a function returns a sum over samples: a mean would silently be divided by the
// number of predictions again. Any thread.
class SumCheck {
 public:
  // `sum` is the result of `sum_of` for this batch. Throws std::invalid_argument if it is a mean:
  // unchanged for the batch concatenated with itself, which doubles a sum.
  void Look(const SumOf& sum_of, const at::Tensor& sum, const at::Tensor& outputs,
            const at::Tensor& targets, const Tensors& others) {
    constexpr double kRounding = 0.01;  // 16-bit numbers have no more than 2 digits
    if (done_ || outputs.size(0) == 0) return;
    const at::NoGradGuard no_grad;
    const double once = sum.item<double>();
    if (once == 0 || !std::isfinite(once) || done_.exchange(true)) return;  // 0 doubled is 0
    const KeepsRandomNumbers as_before(outputs.device());
    double twice = 0;
    try {
      const at::Tensor both =
          sum_of(at::cat({outputs, outputs}), at::cat({targets, targets}), Twice(others));
      twice = both.item<double>();
    } catch (...) {
      return;  // it depends on the batch's length
    }
    if (std::abs(twice - once) > kRounding * std::abs(once)) return;
    throw std::invalid_argument(absl::StrCat(
        "it is a mean, ", once, " for a batch and for the same batch twice; return the sum over ",
        "the samples (at::Reduction::Sum), which is divided by the number of predictions of all ",
        "ranks"));
  }

 private:
  std::atomic<bool> done_ = false;
};

// `sum_with`, or else `sum` for batches with only inputs and targets.
template <typename Sum>
SumOf SumWithOthers(const SumOf& sum_with, const Sum& sum) {
  if (sum_with) return sum_with;
  return [sum](const at::Tensor& outputs, const at::Tensor& targets, const Tensors& /*others*/) {
    return sum(outputs, targets);
  };
}

// `updates`, whose functions name themselves in errors.
OwnUpdates GuardUpdates(const OwnUpdates& updates, const std::string& of) {
  OwnUpdates guarded = updates;
  if (updates.settings_of) {
    guarded.settings_of = [of, settings_of = updates.settings_of](const std::string& parameter) {
      return InNameOf("the settings of parameters" + of, [&] { return settings_of(parameter); });
    };
  }
  if (updates.rule) {
    guarded.rule->update = [whose = absl::StrCat("the optimizer ", updates.rule->name, of),
                            update = updates.rule->update](
                               const at::Tensor& parameter, const at::Tensor& gradient,
                               const Tensors& kept, const UpdateStep& step) {
      InNameOf(whose, [&] { update(parameter, gradient, kept, step); });
    };
  }
  if (updates.schedule) {
    guarded.schedule = [whose = "the schedule" + of, schedule = updates.schedule](
                           std::int64_t step, std::int64_t steps) {
      return InNameOf(whose, [&] {
        const double factor = schedule(step, steps);
        if (std::isfinite(factor) && factor >= 0) return factor;
        throw std::invalid_argument(absl::StrCat("it returned ", factor, " for step ", step, " of ",
                                                 steps, ", and must return at least 0"));
      });
    };
  }
  return guarded;
}

absl::Status CheckUpdates(const Recipe& recipe) {
  if (!recipe.updates.rule) return absl::OkStatus();
  const UpdateRule& rule = *recipe.updates.rule;
  if (!IsShowable(rule.name)) {
    return BadRecipe("its optimizer's name is empty or has control characters");
  }
  if (!rule.update) {
    return BadRecipe(absl::StrCat("optimizer ", rule.name, " has no function that updates a ",
                                  "parameter (UpdateRule::update)"));
  }
  if (!(rule.lr > 0) || !std::isfinite(rule.lr)) {
    return BadRecipe(absl::StrCat("optimizer ", rule.name, " has a learning rate of ", rule.lr,
                                  ", which must be above 0"));
  }
  std::set<std::string> names = {"step"};  // which is kept for each parameter anyway
  for (const std::string& name : rule.kept) {
    const bool plain = IsShowable(name) && name.find_first_of(",.") == std::string::npos;
    if (plain && names.insert(name).second) continue;
    return BadRecipe(absl::StrCat("optimizer ", rule.name, " keeps '", name,
                                  "'; each name must be another, not empty and not 'step', and "
                                  "have no commas or points"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRecipe(const Recipe& recipe) {
  if (!IsShowable(recipe.name)) return BadRecipe("its name is empty or has control characters");
  const std::pair<bool, const char*> functions[] = {
      {recipe.data != nullptr, "opens the data (Recipe::data)"},
      {recipe.model != nullptr, "makes the model (Recipe::model)"},
      {recipe.loss != nullptr || recipe.loss_with != nullptr, "computes the loss (Recipe::loss)"}};
  for (const auto& [there, what] : functions) {
    if (!there) return BadRecipe(absl::StrCat(recipe.name, " has no function that ", what));
  }
  const absl::Status updates = CheckUpdates(recipe);
  return updates.ok() ? CheckMetrics(recipe) : updates;
}

Recipe Guarded(const Recipe& recipe) {
  const std::string of = absl::StrCat(" of ", recipe.name);
  Recipe guarded = recipe;
  guarded.data = [of, open = recipe.data](const DataOptions& options) {
    absl::StatusOr<Splits> splits =
        InNameOf("the data function" + of, [&] { return open(options); });
    if (!splits.ok()) return splits;
    splits->train = GuardDataset("the training data" + of, std::move(splits->train));
    splits->test = GuardDataset("the test data" + of, std::move(splits->test));
    return splits;
  };
  guarded.model = [of, make = recipe.model](const DataShape& shape) {
    absl::StatusOr<Network> network =
        InNameOf("the model function" + of, [&] { return make(shape); });
    if (!network.ok()) return network;
    for (Stage& stage : network->stages) {
      if (!stage.forward) continue;
      stage.forward = [whose = absl::StrCat("stage '", stage.name, "'", of),
                       forward = std::move(stage.forward)](const at::Tensor& inputs) {
        return InNameOf(whose, [&] { return forward(inputs); });
      };
    }
    return network;
  };
  const SumOf loss = [of, loss = SumWithOthers(recipe.loss_with, recipe.loss),
                      check = std::make_shared<SumCheck>()](const at::Tensor& outputs,
                                                            const at::Tensor& targets,
                                                            const Tensors& others) {
    return InNameOf("the loss" + of, [&] {
      at::Tensor sum = OneNumber(loss(outputs, targets, others));
      if (outputs.requires_grad() && !sum.requires_grad()) {
        throw std::invalid_argument(
            "it does not depend on the outputs: look for what is detached, or computed without "
            "gradients");
      }
      check->Look(loss, sum, outputs, targets, others);
      return sum;
    });
  };
  guarded.loss = [loss](const at::Tensor& outputs, const at::Tensor& targets) {
    return loss(outputs, targets, {});
  };
  if (recipe.loss_with) guarded.loss_with = loss;
  for (Metric& metric : guarded.metrics) {
    const SumOf sum = [whose = absl::StrCat("metric '", metric.name, "'", of),
                       sum = SumWithOthers(metric.sum_with, metric.sum)](const at::Tensor& outputs,
                                                                         const at::Tensor& targets,
                                                                         const Tensors& others) {
      return InNameOf(whose, [&] { return OneNumber(sum(outputs, targets, others)); });
    };
    if (metric.sum_with) metric.sum_with = sum;
    metric.sum = [sum](const at::Tensor& outputs, const at::Tensor& targets) {
      return sum(outputs, targets, {});
    };
  }
  guarded.updates = GuardUpdates(recipe.updates, of);
  if (recipe.flags) {
    guarded.flags = [of, add = recipe.flags](FlagSet& flags) {
      InNameOf("the flags function" + of, [&] { add(flags); });
    };
  }
  return guarded;
}

}  // namespace muster::trainer
