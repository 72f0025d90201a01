#include "trainer/parallel/shared_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <map>
#include <set>

namespace muster::trainer {

std::vector<SharedParameters> FindShared(const Model& model, const PipelineShape& shape,
                                         const std::vector<StageRange>& parts) {
  std::map<std::string, std::set<int>> users;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const NamedTensor& one : model.ParametersOf(parts[part])) {
      users[one.name].insert(shape.RankOf(static_cast<int>(part)));
    }
  }
  std::map<std::set<int>, std::vector<std::string>> names;
  for (const auto& [name, ranks] : users) {
    if (ranks.size() > 1) names[ranks].push_back(name);
  }
  std::vector<SharedParameters> shared;
  for (const auto& [ranks, their] : names) {
    shared.push_back({{ranks.begin(), ranks.end()}, their});
  }
  return shared;
}

void SumSharedGradients(const std::vector<NamedTensor>& parameters, Group& group) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const NamedTensor& one : parameters) {
    at::Tensor& gradient = one.tensor.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(one.tensor);
    at::Tensor sum = gradient.contiguous();
    group.AllReduce(sum, Use::kGradients);
    if (!sum.is_same(gradient)) gradient.copy_(sum);
  }
}

}  // namespace muster::trainer
