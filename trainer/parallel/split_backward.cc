#include "trainer/parallel/split_backward.h"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace muster::trainer {
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

// The nodes from `root` down of which some path leads to `target`; empty if there is none.
std::unordered_set<const Node*> NodesAbove(const SharedNode& root, const Node* target) {
  std::unordered_set<const Node*> above = {target};
  std::unordered_set<const Node*> seen = {target};
  std::vector<std::pair<const Node*, std::size_t>> path = {{root.get(), 0}};
  seen.insert(root.get());
  while (!path.empty()) {  // depth first, so that a node is left after all that are below it
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

// A parameter, and the nodes above the inputs from which the rest of the way to it begins.
struct Leaf {
  SharedNode accumulate;
  std::vector<SharedNode> users;
};

using Leaves = std::unordered_map<const Node*, Leaf>;

// Finds the parameters that `user` leads to by edges other than those to nodes in `above`.
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

// The shared pointers to `nodes`, which are all below `root`.
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

// A part of what is left: from these edges with these gradients to these parameters.
struct Remainder {
  edge_list roots;
  variable_list gradients;
  edge_list leaves;
};

// Whether a node can be run for some of its gradients, and then again for the others. A
// torch::autograd::Function, which is not traceable, computes all whenever it runs.
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

  // What to catch on the way: gradients of parameters that cannot wait, and what arrives at the
  // nodes from which the others will go on.
  edge_list caught = {input};
  std::vector<Remainder> left;
  std::unordered_map<const Node*, std::size_t> left_of;
  std::vector<std::pair<std::size_t, std::size_t>>
      owner;  // of caught[1 + i]: in `left`, which root
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
