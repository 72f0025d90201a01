// A program of a user's, as examples/own_model is one, whose recipe is not a plain one:
//
//   own_program CASE [FLAGS]     the flags are those of muster-train
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

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
  return {
      .module = module,
      .stages = {{"net", [module](const at::Tensor& places) { return module->Forward(places); }}}};
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
                         return (heights - measured).abs().lt(0.1).sum().item<double>();
                       }}}};
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
  argv[1] = argv[0];
  return mt::TrainMain(argc - 1, argv + 1, recipe);
}
