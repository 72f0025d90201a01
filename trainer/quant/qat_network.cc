#include "trainer/quant/qat_network.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/quant/padding.h"

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

// A layer under its name in the state dict, as Python's nn.qat.Linear has it.
struct LayerModule : nn::Module {
  explicit LayerModule(const QatLayer& layer) {
    register_parameter("weight", layer.weight());
    if (layer.bias().defined()) register_parameter("bias", layer.bias());
    register_module("weight_fake_quant", layer.weight_rounding);
    register_module("activation_post_process", layer.output_rounding);
  }
};

// The stub that the input goes through in Python.
struct StubModule : nn::Module {
  explicit StubModule(std::shared_ptr<ActivationFakeQuantize> rounding) {
    register_module("activation_post_process", std::move(rounding));
  }
};

at::Tensor Compute(const QatLayer& layer, const at::Tensor& weight, const at::Tensor& inputs) {
  at::Tensor x;
  if (layer.linear) {
    x = at::linear(inputs, weight, layer.bias());
  } else if (layer.convolution) {
    const auto& options = layer.convolution->options;
    x = at::conv2d(inputs, weight, layer.bias(), options.stride(), *PaddingOf(options),
                   options.dilation(), options.groups());
  } else {
    return inputs.flatten(1);
  }
  for (const auto& pool : layer.pools) x = pool->forward(x);
  return layer.relu ? at::relu(x) : x;
}

absl::Status CannotQuantize(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--qat cannot quantize layer ", name, ", ", why,
      "; it needs a torch::nn::Sequential of Linear, Conv2d, ReLU, MaxPool2d and Flatten"));
}

// Adds `module` to `layers`: as the next one, or to the one that it follows.
absl::Status AddLayer(const std::string& name, const std::shared_ptr<nn::Module>& module,
                      std::vector<QatLayer>& layers) {
  QatLayer layer{.name = name};
  layer.linear = std::dynamic_pointer_cast<nn::LinearImpl>(module);
  layer.convolution = std::dynamic_pointer_cast<nn::Conv2dImpl>(module);
  if (layer.linear || layer.convolution) {
    if (layer.convolution && !PaddingOf(layer.convolution->options)) {
      return CannotQuantize(name, "whose padding is not a number of zeros");
    }
    layer.weight_rounding = std::make_shared<WeightFakeQuantize>(layer.weight().size(0));
    layer.output_rounding = std::make_shared<ActivationFakeQuantize>();
    layers.push_back(std::move(layer));
    return absl::OkStatus();
  }
  if (const auto* flatten = module->as<nn::FlattenImpl>()) {
    if (flatten->options.start_dim() != 1 || flatten->options.end_dim() != -1) {
      return CannotQuantize(name, "which does not make a vector of each sample");
    }
    layers.push_back(std::move(layer));
    return absl::OkStatus();
  }
  const bool follows = !layers.empty() && layers.back().output_rounding != nullptr;
  if (module->as<nn::ReLUImpl>() != nullptr) {
    if (!follows) return CannotQuantize(name, "a ReLU that follows no layer with weights");
    layers.back().relu = true;
    return absl::OkStatus();
  }
  if (auto pool = std::dynamic_pointer_cast<nn::MaxPool2dImpl>(module)) {
    if (!follows) return CannotQuantize(name, "a pooling that follows no layer with weights");
    layers.back().pools.push_back(std::move(pool));
    return absl::OkStatus();
  }
  return CannotQuantize(name, absl::StrCat("a ", module->name()));
}

}  // namespace

QatNetwork::QatNetwork(std::vector<QatLayer> layers) : layers_(std::move(layers)) {
  input_ = std::make_shared<ActivationFakeQuantize>();
  register_module("quant", std::make_shared<StubModule>(input_));
  activations_.push_back(input_);
  for (const QatLayer& layer : layers_) {
    if (!layer.output_rounding) continue;
    register_module(layer.name, std::make_shared<LayerModule>(layer));
    activations_.push_back(layer.output_rounding);
  }
}

void QatNetwork::SetPhase(QatPhase phase) {
  for (const auto& activation : activations_) activation->SetPhase(phase);
  for (const QatLayer& layer : layers_) {
    if (layer.weight_rounding) layer.weight_rounding->SetPhase(phase);
  }
}

bool QatNetwork::observed() const {
  return absl::c_all_of(activations_, [](const auto& one) { return one->observed(); }) &&
         absl::c_all_of(layers_, [](const QatLayer& layer) {
           return !layer.weight_rounding || layer.weight_rounding->observed();
         });
}

at::Tensor QatNetwork::RunLayer(std::size_t index, const at::Tensor& inputs) {
  const QatLayer& layer = layers_[index];
  if (!layer.output_rounding) return Compute(layer, {}, inputs);
  const at::Tensor weight = layer.weight_rounding->Apply(layer.weight());
  return layer.output_rounding->Apply(Compute(layer, weight, inputs));
}

at::Tensor QatNetwork::FloatForward(const at::Tensor& inputs) const {
  at::Tensor x = inputs;
  for (const QatLayer& layer : layers_) {
    x = Compute(layer, layer.output_rounding ? layer.weight() : at::Tensor(), x);
  }
  return x;
}

std::int64_t QatNetwork::float_bytes() const {
  std::int64_t bytes = 0;
  for (const QatLayer& layer : layers_) {
    if (layer.output_rounding) bytes += static_cast<std::int64_t>(layer.weight().nbytes());
  }
  return bytes;
}

absl::StatusOr<Network> PrepareQat(const Network& network) {
  const auto* chain = network.module->as<nn::SequentialImpl>();
  if (chain == nullptr) {
    return absl::InvalidArgumentError(
        "--qat needs a torch::nn::Sequential of Linear, Conv2d, ReLU, MaxPool2d and Flatten, and "
        "this network is none");
  }
  std::vector<QatLayer> layers;
  for (const auto& child : chain->named_children()) {
    const absl::Status added = AddLayer(child.key(), child.value(), layers);
    if (!added.ok()) return added;
  }
  const auto module = std::make_shared<QatNetwork>(std::move(layers));
  Network prepared{.module = module,
                   .takes_images = network.takes_images,
                   .draws_random_numbers = network.draws_random_numbers};
  prepared.stages.push_back(
      {"quant", [module](const at::Tensor& inputs) { return module->RoundInput(inputs); }});
  for (std::size_t i = 0; i < module->layers().size(); ++i) {
    prepared.stages.push_back({module->layers()[i].name, [module, i](const at::Tensor& inputs) {
                                 return module->RunLayer(i, inputs);
                               }});
  }
  return prepared;
}

ModelRecipe QatRecipe(const ModelRecipe& recipe) {
  ModelRecipe qat = recipe;
  qat.make = [make = recipe.make](const DataShape& shape) -> absl::StatusOr<Network> {
    const absl::StatusOr<Network> network = make(shape);
    if (!network.ok()) return network;
    return PrepareQat(*network);
  };
  return qat;
}

}  // namespace muster::trainer
