// A program of a user's, as examples/own_model is one, whose recipe is not a plain one:
//
//   own_program CASE [FLAGS]     the flags are those of muster-train
#include <torch/torch.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "trainer/models/batch_norm_layer.h"
#include "trainer/train_main.h"

namespace muster::trainer {
namespace {

// A matrix that belongs to another module as well.
struct Again : torch::nn::Module {
  explicit Again(const at::Tensor& shared) : weight(register_parameter("weight", shared)) {}
  at::Tensor weight;
};

// Two coordinates in, one height out, through the same matrix twice.
struct Net : torch::nn::Module {
  explicit Net(const std::string& name)
      : inner(register_module("inner", torch::nn::Linear(2, 8))),
        outer(register_module("outer", torch::nn::Linear(8, 8))) {
    if (name == "tied") register_module("again", std::make_shared<Again>(outer->weight));
    height = register_module("height", torch::nn::Linear(8, 1));
    if (name == "frozen" || name == "all-frozen") Freeze(*inner);
    if (name == "all-frozen") Freeze(*this);
  }

  static void Freeze(torch::nn::Module& module) {
    for (at::Tensor& parameter : module.parameters()) parameter.set_requires_grad(false);
  }

  at::Tensor Forward(const at::Tensor& places) {
    at::Tensor x = torch::tanh(outer(torch::tanh(inner(places))));
    x = torch::tanh(torch::linear(x, outer->weight));
    return height(x);
  }

  torch::nn::Linear inner;
  torch::nn::Linear outer;
  torch::nn::Linear height = nullptr;
};

// The same numbers as Net's, of which those of `inner` are no parameters at all.
struct Constant : torch::nn::Module {
  Constant() : net("plain") {
    weight = register_buffer("weight", net.inner->weight.detach());
    bias = register_buffer("bias", net.inner->bias.detach());
    register_module("outer", net.outer);
    register_module("height", net.height);
  }

  at::Tensor Forward(const at::Tensor& places) {
    at::Tensor x = torch::tanh(net.outer(torch::tanh(torch::linear(places, weight, bias))));
    x = torch::tanh(torch::linear(x, net.outer->weight));
    return net.height(x);
  }

  Net net;
  at::Tensor weight;
  at::Tensor bias;
};

// Two coordinates in, one height out, and normalized in between.
struct Normed : torch::nn::Module {
  explicit Normed(const std::shared_ptr<const BatchNormFunction>& function)
      : inner(register_module("inner", torch::nn::Linear(2, 8))),
        norm(register_module("norm", std::make_shared<BatchNorm>(8, function))),
        height(register_module("height", torch::nn::Linear(8, 1))) {}

  torch::nn::Linear inner;
  std::shared_ptr<BatchNorm> norm;
  torch::nn::Linear height;
};

absl::StatusOr<Network> MakeNormed(const DataShape& /*shape*/) {
  const auto function = std::make_shared<BatchNormFunction>(LocalBatchNorm);
  const auto net = std::make_shared<Normed>(function);
  return Network{
      .module = net,
      .stages = {{"inner", [net](const at::Tensor& places) { return net->inner(places); }},
                 {"norm",
                  [net](const at::Tensor& x) { return torch::tanh(net->norm->Forward(x)); }},
                 {"height", [net](const at::Tensor& x) { return net->height(x); }}},
      .batch_norm = function};
}

// The first `count` of a row of places.
class Survey : public Dataset {
 public:
  explicit Survey(std::int64_t count) : count_(count) {}

  std::int64_t size() const override { return count_; }
  DataShape shape() const override { return {.kind = DataShape::Kind::kSamples}; }
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
               bool /*train*/) const override {
    const auto rows = static_cast<std::int64_t>(indices.size());
    Batch batch{at::empty({rows, 2}), at::empty({rows, 1})};
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto i = static_cast<double>(indices.at(static_cast<std::size_t>(row)));
      const double x = std::sin(1.3 * i);
      const double y = std::cos(2.1 * i);
      batch.inputs[row][0] = x;
      batch.inputs[row][1] = y;
      batch.targets[row][0] = std::sin(3 * x) * std::cos(2 * y);
    }
    return batch;
  }

 private:
  const std::int64_t count_;
};

template <typename Module, typename... Arguments>
Network NetworkOf(const Arguments&... arguments) {
  const auto module = std::make_shared<Module>(arguments...);
  Stage stage = {"net", [module](const at::Tensor& places) { return module->Forward(places); }};
  for (const auto& child : module->named_children()) stage.uses.push_back(child.key());
  return {.module = module, .stages = {stage}};
}

Recipe Plain(const std::string& name) {
  return {.name = "hills",
          .data = [](const DataOptions&) -> absl::StatusOr<Splits> {
            return Splits{std::make_shared<Survey>(96), std::make_shared<Survey>(32)};
          },
          .model = [name](const DataShape&) -> absl::StatusOr<Network> {
            if (name == "constant") return NetworkOf<Constant>();
            return NetworkOf<Net>(name);
          },
          .loss = [](const at::Tensor& heights,
                     const at::Tensor& measured) { return (heights - measured).square().sum(); },
          .metrics = {{"within 0.1", [](const at::Tensor& heights, const at::Tensor& measured) {
                         return (heights - measured).abs().lt(0.1).sum();
                       }}}};
}

std::shared_ptr<const Dataset> Places(std::int64_t count) {
  return std::make_shared<Survey>(count);
}

bool OfRankOne() {
  const char* const rank = std::getenv("RANK");
  return rank != nullptr && rank == std::string("1");
}

// Places whose batches are changed.
class Changed : public Survey {
 public:
  using Change = void (*)(Batch& batch);
  Changed(std::int64_t count, Change change) : Survey(count), change_(change) {}

  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override {
    Batch batch = Survey::Gather(indices, epoch, train);
    change_(batch);
    return batch;
  }

 private:
  const Change change_;
};

// The second coordinate, and the weight of each place, come in separate tensors.
class InThreeTensors : public Survey {
 public:
  using Survey::Survey;

  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override {
    Batch batch = Survey::Gather(indices, epoch, train);
    batch.others = {batch.inputs.narrow(1, 1, 1).clone(), at::ones_like(batch.targets)};
    batch.inputs = batch.inputs.narrow(1, 0, 1).clone();
    return batch;
  }
};

void UseThreeTensors(Recipe& recipe) {
  recipe.data = [](const DataOptions&) {
    return Splits{std::make_shared<InThreeTensors>(96), std::make_shared<InThreeTensors>(32)};
  };
  recipe.model = [](const DataShape&) -> absl::StatusOr<Network> {
    const auto net = std::make_shared<Net>("plain");
    const auto others = std::make_shared<std::vector<at::Tensor>>();
    return Network{.module = net,
                   .stages = {{"net",
                               [net, others](const at::Tensor& x) {
                                 return net->Forward(torch::cat({x, others->at(0)}, 1));
                               },
                               {"inner", "outer", "height"}}},
                   .others = others};
  };
  recipe.loss_with = [](const at::Tensor& heights, const at::Tensor& measured,
                        const std::vector<at::Tensor>& others) {
    return ((heights - measured).square() * others.at(1)).sum();
  };
  recipe.metrics[0].sum_with = [](const at::Tensor& heights, const at::Tensor& measured,
                                  const std::vector<at::Tensor>& others) {
    return ((heights - measured).abs().lt(0.1) * others.at(1)).sum();
  };
}

// SGD with momentum, written by a user who does not know that it exists.
UpdateRule OwnMomentum() {
  return {.name = "heavy ball",
          .kept = {"momentum_buffer"},
          .update = [](const at::Tensor& parameter, const at::Tensor& gradient,
                       const std::vector<at::Tensor>& kept, const UpdateStep& step) {
            kept[0].mul_(0.9).add_(gradient);
            parameter.add_(kept[0], -step.lr);
          }};
}

void MoreRows(Batch& batch) {
  batch.inputs = torch::cat({batch.inputs, batch.inputs});
  batch.targets = torch::cat({batch.targets, batch.targets});
}
void FewerTargets(Batch& batch) {
  batch.targets = batch.targets.narrow(0, 0, batch.targets.size(0) - 1);
}
void NoTargets(Batch& batch) {
  batch.targets = batch.targets.narrow(1, 0, 0);
}
void Undefined(Batch& batch) {
  batch.inputs = at::Tensor();
}
void Throw(Batch& /*batch*/) {
  throw 42;
}

void ChangeBatches(Recipe& recipe, Changed::Change change) {
  recipe.data = [change](const DataOptions&) {
    return Splits{std::make_shared<Changed>(96, change), Places(32)};
  };
}

void ChangeNetwork(Recipe& recipe, void (*change)(Network& network)) {
  recipe.model = [make = recipe.model, change](const DataShape& shape) {
    absl::StatusOr<Network> network = make(shape);
    if (network.ok()) change(*network);
    return network;
  };
}

// What is done to the plain recipe in each case.
using Change = void (*)(Recipe& recipe);

const std::map<std::string, Change>& Cases() {
  static const auto* const cases = new std::map<std::string, Change>{
      {"plain", [](Recipe&) {}},
      {"tied", [](Recipe&) {}},
      {"frozen", [](Recipe&) {}},
      {"all-frozen", [](Recipe&) {}},
      {"constant", [](Recipe&) {}},
      {"empty",
       [](Recipe& recipe) {
         recipe.model = [](const DataShape&) -> absl::StatusOr<Network> {
           const torch::nn::Tanh module;
           return Network{.module = module.ptr(),
                          .stages = {{"tanh", [](const at::Tensor& x) { return x.tanh(); }}}};
         };
       }},
      {"metric-loss", [](Recipe& recipe) { recipe.metrics[0].name = "loss"; }},
      {"metric-samples", [](Recipe& recipe) { recipe.metrics[0].name = "samples"; }},
      {"metric-twice", [](Recipe& recipe) { recipe.metrics.push_back(recipe.metrics[0]); }},
      {"metric-escape", [](Recipe& recipe) { recipe.metrics[0].name = "\x1b[2Jx"; }},
      {"metric-null", [](Recipe& recipe) { recipe.metrics[0].sum = nullptr; }},
      {"metric-quote", [](Recipe& recipe) { recipe.metrics[0].name = "a \"b\\"; }},
      {"name-newline", [](Recipe& recipe) { recipe.name = "a\nb"; }},
      {"no-data", [](Recipe& recipe) { recipe.data = nullptr; }},
      {"no-model", [](Recipe& recipe) { recipe.model = nullptr; }},
      {"no-loss", [](Recipe& recipe) { recipe.loss = nullptr; }},
      {"no-train",
       [](Recipe& recipe) {
         recipe.data = [](const DataOptions&) { return Splits{nullptr, Places(32)}; };
       }},
      {"no-test",
       [](Recipe& recipe) {
         recipe.data = [](const DataOptions&) { return Splits{Places(96), nullptr}; };
       }},
      {"empty-train",
       [](Recipe& recipe) {
         recipe.data = [](const DataOptions&) { return Splits{Places(0), Places(32)}; };
       }},
      {"empty-test",
       [](Recipe& recipe) {
         recipe.data = [](const DataOptions&) { return Splits{Places(96), Places(0)}; };
       }},
      {"negative",
       [](Recipe& recipe) {
         recipe.data = [](const DataOptions&) { return Splits{Places(-5), Places(32)}; };
       }},
      {"no-module",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) { network.module = nullptr; });
       }},
      {"no-stages",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) { network.stages.clear(); });
       }},
      {"no-forward",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) { network.stages[0].forward = nullptr; });
       }},
      {"more-rows", [](Recipe& recipe) { ChangeBatches(recipe, MoreRows); }},
      {"fewer-targets", [](Recipe& recipe) { ChangeBatches(recipe, FewerTargets); }},
      {"no-targets", [](Recipe& recipe) { ChangeBatches(recipe, NoTargets); }},
      {"undefined", [](Recipe& recipe) { ChangeBatches(recipe, Undefined); }},
      {"throw-gather", [](Recipe& recipe) { ChangeBatches(recipe, Throw); }},
      {"throw-data",
       [](Recipe& recipe) {
         recipe.data = [](const DataOptions&) -> absl::StatusOr<Splits> { throw 42; };
       }},
      {"throw-data-of-1",
       [](Recipe& recipe) {
         recipe.data = [open = recipe.data](const DataOptions& options) {
           if (OfRankOne()) throw std::runtime_error("no such survey");
           return open(options);
         };
       }},
      {"throw-model", [](Recipe& recipe) { ChangeNetwork(recipe, [](Network&) { throw 42; }); }},
      {"throw-model-of-1",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network&) {
           if (OfRankOne()) throw std::runtime_error("no such network");
         });
       }},
      {"other-model-of-1",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) {
           if (OfRankOne()) network.module->register_parameter("more", at::zeros({2, 3}));
         });
       }},
      {"throw-forward",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) {
           network.stages[0].forward = [](const at::Tensor&) -> at::Tensor { throw 42; };
         });
       }},
      {"misfit",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) {
           network.stages[0].forward = [](const at::Tensor& x) { return x.mm(x); };
         });
       }},
      {"flat",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) {
           network.stages[0].forward = [forward = network.stages[0].forward](const at::Tensor& x) {
             return torch::cat({forward(x), forward(x)});
           };
         });
       }},
      {"detached",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) {
           network.stages[0].forward = [forward = network.stages[0].forward](const at::Tensor& x) {
             return forward(x).detach();
           };
         });
       }},
      {"throw-loss",
       [](Recipe& recipe) {
         recipe.loss = [](const at::Tensor&, const at::Tensor&) -> at::Tensor { throw 42; };
       }},
      {"mean-loss",
       [](Recipe& recipe) {
         recipe.loss = [](const at::Tensor& a, const at::Tensor& b) { return (a - b).square(); };
       }},
      {"batch-norm", [](Recipe& recipe) { recipe.model = MakeNormed; }},
      {"three-tensors", UseThreeTensors},
      {"three-tensors-short",
       [](Recipe& recipe) {
         UseThreeTensors(recipe);
         ChangeBatches(recipe, [](Batch& batch) { batch.others = {batch.inputs[0]}; });
       }},
      {"own-optimizer", [](Recipe& recipe) { recipe.updates.rule = OwnMomentum(); }},
      {"rule-without-update",
       [](Recipe& recipe) { recipe.updates.rule = UpdateRule{.name = "nothing"}; }},
      {"own-schedule",
       [](Recipe& recipe) {
         recipe.updates.schedule = [](std::int64_t, std::int64_t) { return 0.5; };
       }},
      {"negative-schedule",
       [](Recipe& recipe) {
         recipe.updates.schedule = [](std::int64_t step, std::int64_t) {
           return 1 - static_cast<double>(step);
         };
       }},
      {"own-groups",
       [](Recipe& recipe) {
         recipe.updates.settings_of = [](const std::string& parameter) -> ParameterSettings {
           if (parameter.starts_with("inner.")) return {.lr_scale = 0, .weight_decay = 0};
           return {};
         };
       }},
      {"detached-loss",
       [](Recipe& recipe) {
         recipe.loss = [](const at::Tensor& a, const at::Tensor& b) {
           return (a - b).square().sum().detach();
         };
       }},
      {"throw-backward",
       [](Recipe& recipe) {
         recipe.loss = [](const at::Tensor& a, const at::Tensor& b) {
           at::Tensor sum = (a - b).square().sum();
           sum.register_hook([](const at::Tensor& gradient) -> at::Tensor {
             if (gradient.defined()) throw 42;
             return gradient;
           });
           return sum;
         };
       }},
      {"throw-metric",
       [](Recipe& recipe) {
         recipe.metrics[0].sum = [](const at::Tensor&, const at::Tensor&) -> at::Tensor {
           throw 42;
         };
       }},
      {"metric-shape",
       [](Recipe& recipe) {
         recipe.metrics[0].sum = [](const at::Tensor& heights, const at::Tensor&) {
           return heights.narrow(0, 0, 3).flatten();
         };
       }},
      // While the environment variable is set, the first test stops the program.
      {"stop-in-test",
       [](Recipe& recipe) {
         recipe.metrics[0].sum = [sum = recipe.metrics[0].sum](const at::Tensor& predictions,
                                                               const at::Tensor& targets) {
           if (std::getenv("STOP_IN_TEST") != nullptr) std::raise(SIGTERM);
           return sum(predictions, targets);
         };
       }},
      {"nan-parameter",
       [](Recipe& recipe) {
         ChangeNetwork(recipe, [](Network& network) {
           network.module->register_parameter("?", at::full({2}, NAN));
         });
       }},
      {"throw-flags", [](Recipe& recipe) { recipe.flags = [](FlagSet&) { throw 42; }; }},
  };
  return *cases;
}

}  // namespace
}  // namespace muster::trainer

int main(int argc, char** argv) {
  namespace mt = muster::trainer;
  const std::string name = argc > 1 ? argv[1] : "";
  const auto found = mt::Cases().find(name);
  if (found == mt::Cases().end()) {
    std::fprintf(stderr, "own_program: there is no case '%s'\n", name.c_str());
    return 99;
  }
  mt::Recipe recipe = mt::Plain(name);
  found->second(recipe);
  // Some programs are started without so much as their own name.
  if (name == "plain" && argc == 2) return mt::TrainMain(0, argv + 2, recipe);
  argv[1] = argv[0];
  return mt::TrainMain(argc - 1, argv + 1, recipe);
}
