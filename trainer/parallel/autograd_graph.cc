#include "trainer/parallel/autograd_graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "absl/strings/strip.h"

namespace muster::trainer {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;

double Numbers(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel());
}

// A tensor like an operator's input or output, of which the node only knows the sizes.
at::Tensor Like(const Edge& edge) {
  return edge.function->input_metadata(edge.input_nr).zeros_like();
}

// The positions of the two factors among an operator's inputs.
struct Product {
  std::size_t left = 0;
  std::size_t right = 1;
  bool convolution = false;
};

// The basic products, by node name: a linear layer is an addmm.
const std::map<std::string, Product, std::less<>>& Products() {
  static const auto* const products = new std::map<std::string, Product, std::less<>>{
      {"MmBackward", {}},
      {"BmmBackward", {}},
      {"AddmmBackward", {.left = 1, .right = 2}},
      {"BaddbmmBackward", {.left = 1, .right = 2}},
      {"ConvolutionBackward", {.convolution = true}}};
  return *products;
}

// The multiplications of the operator whose backward is `node`. A stage's input data has no node,
// so the product's length is taken from either factor that has one.
double MultiplicationsOf(Node& node) {
  const std::string name = node.name();
  const auto found = Products().find(absl::StripSuffix(name, "0"));
  if (found == Products().end()) return 0;
  const Product& product = found->second;
  const Edge& left = node.next_edge(product.left);
  const Edge& right = node.next_edge(product.right);
  double each = 0;  // per number of the result
  if (product.convolution) {
    if (!right.is_valid()) return 0;
    const at::Tensor weight = Like(right);  // its first dimension is the result's channels
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

// While an instance exists, all parameters of a model require a gradient: otherwise products with
// them would leave no node.
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

namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;
using SharedNode = std::shared_ptr<Node>;

variable_list RunGraph(const edge_list& roots, const variable_list& gradients, bool keep,
                       bool accumulate, const edge_list& outputs) {
  return torch::autograd::Engine::get_default_engine().execute(
      roots, gradients, keep, /*create_graph=*/false, accumulate, outputs);
}

// The nodes below `root` from which a path leads to `target`; empty if there is none.
std::unordered_set<const Node*> NodesAbove(const SharedNode& root, const Node* target) {
  std::unordered_set<const Node*> above = {target};
  std::unordered_set<const Node*> seen = {target};
  std::vector<std::pair<const Node*, std::size_t>> path = {{root.get(), 0}};
  seen.insert(root.get());
  while (!path.empty()) {  // depth first, so that a node is finished after all nodes below it
    auto& [node, next] = path.back();
    const edge_list& edges = node->next_edges();
    if (next < edges.size()) {
      const Node* below = edges[next++].function.get();
      if (below != nullptr && seen.insert(below).second) path.emplace_back(below, 0);
      continue;
    }
    for (const Edge& edge : edges) {
      if (above.count(edge.function.get()) == 0) continue;
      above.insert(node);
      break;
    }
    path.pop_back();
  }
  above.erase(target);
  return above;
}

// A parameter, and the nodes above the inputs from which separate paths to it begin.
struct Leaf {
  SharedNode accumulate;
  std::vector<SharedNode> users;
};

using Leaves = std::unordered_map<const Node*, Leaf>;

// Finds the parameters that `user` reaches by edges other than those to nodes in `above`.
void AddLeaves(const SharedNode& user, const std::unordered_set<const Node*>& above,
               const Node* inputs, Leaves& leaves) {
  std::unordered_set<const Node*> seen;
  std::vector<SharedNode> open = {user};
  while (!open.empty()) {
    const SharedNode node = std::move(open.back());
    open.pop_back();
    for (const Edge& edge : node->next_edges()) {
      const SharedNode& below = edge.function;
      if (!below || below.get() == inputs || above.count(below.get()) > 0) continue;
      if (!seen.insert(below.get()).second) continue;
      if (dynamic_cast<const AccumulateGrad*>(below.get()) == nullptr) {
        open.push_back(below);
        continue;
      }
      Leaf& leaf = leaves[below.get()];
      leaf.accumulate = below;
      leaf.users.push_back(user);
    }
  }
}

// Shared pointers to `nodes`, which are all below `root`.
std::vector<SharedNode> Shared(const SharedNode& root,
                               const std::unordered_set<const Node*>& nodes) {
  std::vector<SharedNode> shared = {root};
  std::unordered_set<const Node*> seen = {root.get()};
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const SharedNode node = shared[i];
    for (const Edge& edge : node->next_edges()) {
      const Node* below = edge.function.get();
      if (nodes.count(below) > 0 && seen.insert(below).second) shared.push_back(edge.function);
    }
  }
  return shared;
}

// One remaining part of the backward pass: from these edges with these gradients to these
// parameters.
struct Remainder {
  edge_list roots;
  variable_list gradients;
  edge_list leaves;
};

// Whether a node can be run for some of its gradients, and again for the others. A
// torch::autograd::Function, which is not traceable, always computes all.
bool CanRunTwice(Node& node) {
  return node.is_traceable();
}

}  // namespace

SplitBackward BackwardOfInputs(const at::Tensor& outputs, const at::Tensor& gradient,
                               const at::Tensor& inputs) {
  SplitBackward split = {{}, [] {}};
  const Edge root = torch::autograd::impl::gradient_edge(outputs);
  const Edge input = inputs.requires_grad() ? torch::autograd::impl::gradient_edge(inputs) : Edge();
  std::unordered_set<const Node*> above;
  if (input.is_valid()) above = NodesAbove(root.function, input.function.get());
  if (above.empty()) {
    torch::autograd::backward({outputs}, {gradient});
    return split;
  }
  const std::vector<SharedNode> chain = Shared(root.function, above);
  Leaves leaves;
  for (const SharedNode& node : chain) AddLeaves(node, above, input.function.get(), leaves);

  // What to capture: gradients of parameters that cannot be delayed, and the gradients at the nodes
  // from which the others will continue.
  edge_list caught = {input};
  std::vector<Remainder> left;
  std::unordered_map<const Node*, std::size_t> left_of;
  std::vector<std::pair<std::size_t, std::size_t>>
      owner;  // for caught[1 + i]: the index of its root in `left`
  for (const SharedNode& node : chain) {
    if (!CanRunTwice(*node)) continue;
    for (const auto& [key, leaf] : leaves) {
      if (leaf.users.size() != 1 || leaf.users[0] != node) continue;
      if (left_of.emplace(node.get(), left.size()).second) {
        left.emplace_back();
        for (std::uint32_t i = 0; i < node->num_inputs(); ++i) {
          left.back().roots.emplace_back(node, i);
          owner.emplace_back(left.size() - 1, i);
          caught.emplace_back(node, i);
        }
      }
      left[left_of[node.get()]].leaves.emplace_back(leaf.accumulate, 0);
    }
  }
  for (const auto& [key, leaf] : leaves) {
    if (leaf.users.size() == 1 && left_of.count(leaf.users[0].get()) > 0) continue;
    left.push_back({{Edge(leaf.accumulate, 0)}, {}, {Edge(leaf.accumulate, 0)}});
    owner.emplace_back(left.size() - 1, 0);
    caught.emplace_back(leaf.accumulate, 0);
  }

  variable_list found = RunGraph({root}, {gradient}, /*keep=*/true, /*accumulate=*/false, caught);
  split.input_gradient = std::move(found[0]);
  for (Remainder& part : left) part.gradients.resize(part.roots.size());
  for (std::size_t i = 0; i < owner.size(); ++i) {
    left[owner[i].first].gradients[owner[i].second] = std::move(found[1 + i]);
  }
  for (const SharedNode& node : chain) {
    if (left_of.count(node.get()) == 0) node->release_variables();
  }
  split.weights = [left = std::move(left)]() mutable {
    for (Remainder& part : left) {
      edge_list roots;
      variable_list gradients;
      for (std::size_t i = 0; i < part.roots.size(); ++i) {
        if (!part.gradients[i].defined()) continue;
        roots.push_back(std::move(part.roots[i]));
        gradients.push_back(std::move(part.gradients[i]));
      }
      if (!roots.empty()) {
        RunGraph(roots, gradients, /*keep=*/false, /*accumulate=*/true, part.leaves);
      }
    }
    left.clear();
  };
  return split;
}

}  // namespace muster::trainer
