#include "trainer/parallel/stage_costs.h"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include "absl/strings/strip.h"

namespace muster::trainer {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

double Numbers(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel());
}

// A tensor like the one that an operator was given or has returned, of which its node knows the
// sizes alone.
at::Tensor Like(const Edge& edge) {
  return edge.function->input_metadata(edge.input_nr).zeros_like();
}

// Where an operator that multiplies has its matrices among its inputs.
struct Product {
  std::size_t left = 0;
  std::size_t right = 1;
  bool convolution = false;
};

// Those that others are made of, by the names of their nodes: a linear layer is an addmm.
const std::map<std::string, Product, std::less<>>& Products() {
  static const auto* const products = new std::map<std::string, Product, std::less<>>{
      {"MmBackward", {}},
      {"BmmBackward", {}},
      {"AddmmBackward", {.left = 1, .right = 2}},
      {"BaddbmmBackward", {.left = 1, .right = 2}},
      {"ConvolutionBackward", {.convolution = true}}};
  return *products;
}

// The multiplications of the operator that `node` runs backward. Data that stages begin with have
// no node, so a product's length is taken from whichever of its matrices has one.
double MultiplicationsOf(Node& node) {
  const std::string name = node.name();
  const auto found = Products().find(absl::StripSuffix(name, "0"));
  if (found == Products().end()) return 0;
  const Product& product = found->second;
  const Edge& left = node.next_edge(product.left);
  const Edge& right = node.next_edge(product.right);
  double each = 0;  // for each number of the result
  if (product.convolution) {
    if (!right.is_valid()) return 0;
    const at::Tensor weight = Like(right);  // its first dimension: the channels of the result
    each = Numbers(weight) / static_cast<double>(weight.size(0));
  } else if (left.is_valid()) {
    each = static_cast<double>(Like(left).size(-1));
  } else if (right.is_valid()) {
    each = static_cast<double>(Like(right).size(-2));
  }
  return each * Numbers(node.input_metadata(0).zeros_like());
}

double MultiplicationsFor(const at::Tensor& outputs) {
  double sum = 0;
  std::unordered_set<Node*> seen;
  std::vector<Node*> open;
  const auto add = [&](Node* node) {
    if (node != nullptr && seen.insert(node).second) open.push_back(node);
  };
  add(outputs.grad_fn().get());
  while (!open.empty()) {
    Node* const node = open.back();
    open.pop_back();
    sum += MultiplicationsOf(*node);
    for (const Edge& edge : node->next_edges()) add(edge.function.get());
  }
  return sum;
}

// While one exists, all parameters of a model require a gradient: what is multiplied with one that
// does not would leave no node.
class Unfrozen {
 public:
  explicit Unfrozen(const Model& model) {
    for (NamedTensor& one : model.Parameters()) {
      if (one.tensor.requires_grad()) continue;
      frozen_.push_back(one.tensor);
      one.tensor.set_requires_grad(true);
    }
  }
  ~Unfrozen() {
    for (at::Tensor& tensor : frozen_) tensor.set_requires_grad(false);
  }
  Unfrozen(const Unfrozen&) = delete;
  Unfrozen& operator=(const Unfrozen&) = delete;

 private:
  std::vector<at::Tensor> frozen_;
};

}  // namespace

std::vector<double> StageCosts(Model& model, const at::Tensor& inputs) {
  const at::AutoGradMode with_gradients(true);
  const Unfrozen unfrozen(model);
  model.SetTraining(false);
  std::vector<double> costs;
  at::Tensor x = inputs;
  for (std::size_t i = 0; i < model.stages().size(); ++i) {
    x = x.detach().requires_grad_(x.is_floating_point());
    x = model.ForwardPart({}, {i, i + 1}, x);
    costs.push_back(MultiplicationsFor(x) + kCostOfNumber * Numbers(x));
  }
  model.SetTraining(true);
  return costs;
}

std::vector<StageRange> RangesOf(const std::vector<std::size_t>& begins, std::size_t stages) {
  std::vector<StageRange> ranges;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    ranges.push_back({begins[i], i + 1 < begins.size() ? begins[i + 1] : stages});
  }
  return ranges;
}

}  // namespace muster::trainer
