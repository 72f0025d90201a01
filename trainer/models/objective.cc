#include "trainer/models/objective.h"

#include <stdexcept>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/max.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::trainer {

at::Tensor CrossEntropySum(const at::Tensor& scores, const at::Tensor& targets) {
  // 16 bits are precise enough for training, but not for summing.
  const bool half = scores.scalar_type() == at::kHalf || scores.scalar_type() == at::kBFloat16;
  return at::cross_entropy_loss((half ? scores.to(at::kFloat) : scores).flatten(0, -2),
                                targets.flatten(), /*weight=*/{}, at::Reduction::Sum);
}

std::int64_t CountPredictions(const at::Tensor& targets) {
  return targets.numel();
}

at::Tensor CountCorrect(const at::Tensor& scores, const at::Tensor& targets) {
  return scores.argmax(/*dim=*/-1).eq(targets).sum();
}

std::string ValueText(const MetricValue& metric) {
  if (!metric.value) return "not measured";
  if (metric.is_share) return absl::StrFormat("%.2f %%", *metric.value * 100);
  return absl::StrFormat("%.4f", *metric.value);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Targets that LibTorch's cross entropy ignores.
constexpr std::int64_t kIgnored = -100;

// The sum over n predictions of -log softmax(scores)[target]. `scores`: n x own columns.
struct SplitCrossEntropy : torch::autograd::Function<SplitCrossEntropy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& scores,
                            const at::Tensor& targets, TensorLinks* links) {
    const std::int64_t own = scores.size(1);
    at::Tensor top = scores.amax(1);
    links->Max(top);
    const at::Tensor exponentials = (scores - top.unsqueeze(1)).exp_();

    const at::Tensor column = targets - links->part() * own;
    const at::Tensor here = column.ge(0).logical_and_(column.lt(own));
    const at::Tensor index = column.clamp(0, own - 1).unsqueeze(1);
    const at::Tensor of_target = scores.gather(1, index).squeeze(1) - top;
    at::Tensor sums = at::stack({exponentials.sum(1), of_target.masked_fill(~here, 0)});
    links->Sum(sums);

    const at::Tensor ignored = targets.eq(kIgnored);
    context->save_for_backward({exponentials.div_(sums[0].unsqueeze(1)), index, here, ignored});
    return (sums[0].log() - sums[1]).masked_fill(ignored, 0).sum();
  }

  // softmax(scores) - 1 at the target; each rank computes its columns.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor slope = saved[0].clone();
    slope.scatter_add_(1, saved[1], -saved[2].to(slope.scalar_type()).unsqueeze(1));
    slope.masked_fill_(saved[3].unsqueeze(1), 0).mul_(gradients[0]);
    return {slope, at::Tensor(), at::Tensor()};
  }
};

// LibTorch checks this on the CPU, too; with parts, a target that belongs to no rank would go
// unnoticed.
void CheckTargets(const at::Tensor& targets, std::int64_t classes) {
  if (!targets.is_cpu()) return;
  const at::Tensor wrong =
      targets.lt(0).logical_or_(targets.ge(classes)).logical_and_(targets.ne(kIgnored));
  if (!wrong.any().item<bool>()) return;
  throw std::invalid_argument(absl::StrCat("compute the cross entropy: a target is ",
                                           targets.masked_select(wrong)[0].item<std::int64_t>(),
                                           ", and the classes are 0 to ", classes - 1));
}

// Whether `function` is `plain` itself.
template <typename Result, typename Plain>
bool Is(const std::function<Result(const at::Tensor&, const at::Tensor&)>& function, Plain* plain) {
  Plain* const* const target = function.template target<Plain*>();
  return target != nullptr && *target == plain;
}

// `function` of whole scores, for a part of them, of which `gather` makes the whole.
template <typename Gather, typename Function>
auto OfPart(const Gather& gather, const Function& function) {
  return [gather, function](const at::Tensor& part, const auto&... more) {
    return function(gather(part), more...);
  };
}

}  // namespace

at::Tensor SplitCrossEntropySum(const at::Tensor& part_of_scores, const at::Tensor& targets,
                                std::int64_t classes, TensorLinks& links) {
  const at::ScalarType type = part_of_scores.scalar_type();
  const bool half = type == at::kHalf || type == at::kBFloat16;
  const at::Tensor scores = (half ? part_of_scores.to(at::kFloat) : part_of_scores).flatten(0, -2);
  if (targets.numel() == 0) return scores.sum();
  CheckTargets(targets, classes);
  return SplitCrossEntropy::apply(scores, targets.flatten(), &links);
}

at::Tensor SplitCountCorrect(const at::Tensor& part_of_scores, const at::Tensor& targets,
                             TensorLinks& links) {
  if (targets.numel() == 0) return targets.sum();
  const auto [highest, column] = at::max(part_of_scores.detach(), /*dim=*/-1, /*keepdim=*/true);
  const at::Tensor of_parts = links.Gather(highest, -1);
  const at::Tensor classes = links.Gather(column + links.part() * part_of_scores.size(-1), -1);
  const at::Tensor predicted = classes.gather(-1, of_parts.argmax(-1, /*keepdim=*/true));
  return predicted.squeeze(-1).eq(targets).sum();
}

Objective ObjectiveOfParts(const Objective& objective, std::int64_t classes,
                           const std::shared_ptr<TensorLinks>& links) {
  const auto whole = [links, classes](const at::Tensor& part) {
    return links->Gather(part, -1).narrow(-1, 0, classes);
  };
  Objective of_parts = objective;
  if (Is(objective.loss, CrossEntropySum)) {
    of_parts.loss = [links, classes](const at::Tensor& part, const at::Tensor& targets) {
      return SplitCrossEntropySum(part, targets, classes, *links);
    };
  } else {
    of_parts.loss = OfPart(whole, objective.loss);
  }
  if (objective.loss_with) of_parts.loss_with = OfPart(whole, objective.loss_with);
  for (Metric& metric : of_parts.metrics) {
    if (metric.sum_with) metric.sum_with = OfPart(whole, metric.sum_with);
    if (Is(metric.sum, CountCorrect)) {
      metric.sum = [links](const at::Tensor& part, const at::Tensor& targets) {
        return SplitCountCorrect(part, targets, *links);
      };
    } else {
      metric.sum = OfPart(whole, metric.sum);
    }
  }
  return of_parts;
}

}  // namespace muster::trainer
