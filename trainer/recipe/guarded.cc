#include "trainer/recipe/guarded.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::trainer {
namespace {

// What the reports say of a test besides its metrics: eval --json, and test/loss.
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
    if (!metric.sum) {
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

// Calls `function` in the name of `whose`, which says in which words it fails. What follows the
// first line of an exception, such as LibTorch's stack, stays behind it.
template <typename Function>
auto InNameOf(const std::string& whose, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(absl::StrCat(whose, ": ", error.what()));
  } catch (const std::exception& error) {
    throw std::runtime_error(absl::StrCat(whose, ": ", error.what()));
  } catch (...) {
    throw std::runtime_error(absl::StrCat(whose, ": it threw what is no std::exception"));
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
  // Whoever opens it says that it is missing.
  if (dataset == nullptr) return nullptr;
  return std::make_shared<GuardedDataset>(whose, std::move(dataset));
}

// `sum`, if it is what it has to be.
at::Tensor OneNumber(at::Tensor sum) {
  if (!sum.defined()) throw std::invalid_argument("it returned no tensor");
  if (sum.numel() == 1) return sum;
  throw std::invalid_argument(
      absl::StrCat("it returned ", sum.numel(), " numbers, and must return one, their sum"));
}

}  // namespace

absl::Status CheckRecipe(const Recipe& recipe) {
  if (!IsShowable(recipe.name)) return BadRecipe("its name is empty or has control characters");
  const std::pair<bool, const char*> functions[] = {
      {recipe.data != nullptr, "opens the data (Recipe::data)"},
      {recipe.model != nullptr, "makes the model (Recipe::model)"},
      {recipe.loss != nullptr, "computes the loss (Recipe::loss)"}};
  for (const auto& [there, what] : functions) {
    if (!there) return BadRecipe(absl::StrCat(recipe.name, " has no function that ", what));
  }
  return CheckMetrics(recipe);
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
  guarded.loss = [of, loss = recipe.loss](const at::Tensor& outputs, const at::Tensor& targets) {
    return InNameOf("the loss" + of, [&] {
      at::Tensor sum = OneNumber(loss(outputs, targets));
      if (outputs.requires_grad() && !sum.requires_grad()) {
        throw std::invalid_argument(
            "it does not depend on the outputs: look for what is detached, or computed without "
            "gradients");
      }
      return sum;
    });
  };
  for (Metric& metric : guarded.metrics) {
    metric.sum = [whose = absl::StrCat("metric '", metric.name, "'", of),
                  sum = std::move(metric.sum)](const at::Tensor& outputs,
                                               const at::Tensor& targets) {
      return InNameOf(whose, [&] { return OneNumber(sum(outputs, targets)); });
    };
  }
  if (recipe.flags) {
    guarded.flags = [of, add = recipe.flags](FlagSet& flags) {
      InNameOf("the flags function" + of, [&] { add(flags); });
    };
  }
  return guarded;
}

}  // namespace muster::trainer
