#include "trainer/quant/qat_network.h"

#include <ATen/ops/relu.h>
#include <torch/nn/modules/container/sequential.h>

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/models/network.h"

namespace muster::trainer {
namespace {

namespace nn = torch::nn;

// A module that only serves as a level of names, like Python's "layer1.0".
struct NameModule : nn::Module {};

// Observes activations outside of layers: Python's QuantStub and FloatFunctional.
struct StubModule : nn::Module {
  explicit StubModule(std::shared_ptr<ActivationFakeQuantize> rounding) {
    register_module("activation_post_process", std::move(rounding));
  }
};

// Registers `module` in `root` as `name`, whose parts are separated by dots.
void Register(nn::Module& root, const std::string& name, std::shared_ptr<nn::Module> module) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) {
    root.register_module(name, std::move(module));
    return;
  }
  const std::string first = name.substr(0, dot);
  const auto children = root.named_children();
  const auto* known = children.find(first);
  Register(known ? **known : *root.register_module(first, std::make_shared<NameModule>()),
           name.substr(dot + 1), std::move(module));
}

using Rounding = std::shared_ptr<ActivationFakeQuantize>;

// Gives averages the rounding of their inputs; `inputs` is the rounding of the first layer's
// inputs. Returns that of the last one's outputs.
Rounding LinkRoundings(std::vector<QatLayer>& layers, Rounding inputs) {
  for (QatLayer& layer : layers) {
    if (layer.average) layer.input_rounding = inputs;
    if (layer.output_rounding) inputs = layer.output_rounding;
  }
  return inputs;
}

template <typename Run>
at::Tensor RunAll(const std::vector<QatLayer>& layers, at::Tensor x, const Run& run) {
  for (const QatLayer& layer : layers) x = run(layer, x);
  return x;
}

std::string Joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : absl::StrCat(prefix, ".", name);
}

// The layers of a chain; nullopt if `module` is not one.
std::optional<std::vector<NamedLayer>> LayersIn(const nn::Module& module) {
  if (const auto* chain = dynamic_cast<const LayerChain*>(&module)) return chain->layers();
  if (module.as<nn::SequentialImpl>() == nullptr) return std::nullopt;
  std::vector<NamedLayer> layers;
  for (const auto& child : module.named_children()) layers.push_back({child.key(), child.value()});
  return layers;
}

// Adds `chain` to `layers`, expanding other chains in it.
absl::Status AddLayers(const std::string& prefix, const std::vector<NamedLayer>& chain,
                       std::vector<QatLayer>& layers) {
  for (const auto& [name, module] : chain) {
    const std::string whole = Joined(prefix, name);
    const auto inner = LayersIn(*module);
    const absl::Status added =
        inner ? AddLayers(whole, *inner, layers) : AddQatLayer(whole, module, layers);
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

absl::Status AddBlocks(const std::string& prefix, const std::vector<NamedLayer>& chain,
                       std::vector<QatBlock>& blocks) {
  for (const auto& [name, module] : chain) {
    const std::string whole = Joined(prefix, name);
    absl::Status added;
    if (const auto* residual = dynamic_cast<const ResidualBlock*>(module.get())) {
      QatBlock& block = blocks.emplace_back(QatBlock{.name = whole});
      block.sum_rounding = std::make_shared<ActivationFakeQuantize>();
      added = AddLayers(whole, residual->body(), block.body);
      if (added.ok()) added = AddLayers(whole, residual->shortcut(), block.shortcut);
    } else if (const auto inner = LayersIn(*module)) {
      added = AddBlocks(whole, *inner, blocks);
    } else {
      if (blocks.empty() || blocks.back().sum_rounding) blocks.push_back({.name = whole});
      added = AddQatLayer(whole, module, blocks.back().body);
    }
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

}  // namespace

QatNetwork::QatNetwork(std::vector<QatBlock> blocks) : blocks_(std::move(blocks)) {
  input_ = std::make_shared<ActivationFakeQuantize>();
  register_module("quant", std::make_shared<StubModule>(input_));
  activations_.push_back(input_);
  const auto add = [this](const std::vector<QatLayer>& layers) {
    for (const QatLayer& layer : layers) {
      if (!layer.output_rounding) continue;
      Register(*this, layer.name, ModuleOf(layer));
      activations_.push_back(layer.output_rounding);
    }
  };
  Rounding inputs = input_;
  for (QatBlock& block : blocks_) {
    const Rounding outputs = LinkRoundings(block.body, inputs);
    LinkRoundings(block.shortcut, inputs);
    inputs = block.sum_rounding ? block.sum_rounding : outputs;
    add(block.body);
    add(block.shortcut);
    if (!block.sum_rounding) continue;
    Register(*this, Joined(block.name, "add_relu"),
             std::make_shared<StubModule>(block.sum_rounding));
    activations_.push_back(block.sum_rounding);
  }
}

std::vector<const QatLayer*> QatNetwork::layers() const {
  std::vector<const QatLayer*> all;
  for (const QatBlock& block : blocks_) {
    for (const QatLayer& layer : block.body) all.push_back(&layer);
    for (const QatLayer& layer : block.shortcut) all.push_back(&layer);
  }
  return all;
}

void QatNetwork::SetPhase(QatPhase phase) {
  for (const auto& activation : activations_) activation->SetPhase(phase);
  for (const QatLayer* layer : layers()) {
    if (layer->weight_rounding) layer->weight_rounding->SetPhase(phase);
  }
}

bool QatNetwork::observed() const {
  return absl::c_all_of(activations_, [](const auto& one) { return one->observed(); }) &&
         absl::c_all_of(layers(), [](const QatLayer* layer) {
           return !layer->weight_rounding || layer->weight_rounding->observed();
         });
}

bool QatNetwork::normalizes() const {
  return absl::c_any_of(layers(),
                        [](const QatLayer* layer) { return layer->norm.module != nullptr; });
}

at::Tensor QatNetwork::RunBlock(std::size_t index, const at::Tensor& inputs) const {
  const QatBlock& block = blocks_[index];
  const auto run = [](const QatLayer& layer, const at::Tensor& x) { return layer.Run(x); };
  const at::Tensor x = RunAll(block.body, inputs, run);
  if (!block.sum_rounding) return x;
  return block.sum_rounding->Apply(at::relu(x + RunAll(block.shortcut, inputs, run)));
}

at::Tensor QatNetwork::FloatForward(const at::Tensor& inputs) const {
  const auto run = [](const QatLayer& layer, const at::Tensor& x) { return layer.FloatRun(x); };
  at::Tensor x = inputs;
  for (const QatBlock& block : blocks_) {
    const at::Tensor sum = RunAll(block.body, x, run);
    x = block.sum_rounding ? at::relu(sum + RunAll(block.shortcut, x, run)) : sum;
  }
  return x;
}

std::int64_t QatNetwork::float_bytes() const {
  std::int64_t bytes = 0;
  for (const QatLayer* layer : layers()) {
    if (layer->output_rounding) bytes += static_cast<std::int64_t>(layer->weight().nbytes());
  }
  return bytes;
}

absl::StatusOr<Network> PrepareQat(const Network& network) {
  const auto chain = LayersIn(*network.module);
  if (!chain) {
    return absl::InvalidArgumentError(
        absl::StrCat("--qat needs a torch::nn::Sequential of layers that it can quantize, or a "
                     "LayerChain, and this network's module, a ",
                     network.module->name(), ", is neither"));
  }
  std::vector<QatBlock> blocks;
  const absl::Status added = AddBlocks("", *chain, blocks);
  if (!added.ok()) return added;
  const auto module = std::make_shared<QatNetwork>(std::move(blocks));
  Network prepared{.module = module,
                   .batch_norm = network.batch_norm,
                   .takes_images = network.takes_images,
                   .draws_random_numbers = network.draws_random_numbers};
  prepared.stages.push_back(
      {"quant", [module](const at::Tensor& inputs) { return module->RoundInput(inputs); }});
  for (std::size_t i = 0; i < module->blocks().size(); ++i) {
    const QatBlock& block = module->blocks()[i];
    Stage& stage = prepared.stages.emplace_back(Stage{
        block.name, [module, i](const at::Tensor& inputs) { return module->RunBlock(i, inputs); }});
    if (block.sum_rounding) continue;  // its name covers everything in it
    for (const QatLayer& layer : block.body) stage.uses.push_back(layer.name);
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
