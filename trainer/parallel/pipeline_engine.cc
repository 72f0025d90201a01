#include "trainer/parallel/pipeline_engine.h"

#include <chrono>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/models/autocast.h"
#include "trainer/parallel/autograd_graph.h"
#include "trainer/parallel/mesh_links.h"
#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

// How many actions ahead of its use a receive begins. Gloo moves nothing before both sides have
// begun.
constexpr std::size_t kAhead = 2;

// `schedule` without the micro-batches for which `step` has no samples. The rest remains valid: an
// action only waits for others of its own micro-batch.
PipelineSchedule WithSamples(PipelineSchedule schedule, const PipelineStep& step) {
  for (RankActions& actions : schedule.ranks) {
    std::erase_if(actions, [&](const PipelineAction& action) {
      return !HasSamples(step, action.micro_batch);
    });
  }
  return schedule;
}

}  // namespace

// A step in progress.
class PipelineEngine::Run {
 public:
  Run(Group& group, PipelineSchedule schedule, const PipelineStep& step, bool training,
      ActivationLayouts& layouts)
      : rank_(group.rank()),
        schedule_(std::move(schedule)),
        step_(step),
        training_(training),
        mail_(group, schedule_, step.input_sizes, training, layouts) {}

  void Play() {
    const RankActions& actions = schedule_.ranks[static_cast<std::size_t>(rank_)];
    std::size_t expected = 0;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      // Retries those whose layout was not known yet.
      for (expected = i; expected < actions.size() && expected <= i + kAhead; ++expected) {
        Expect(actions[expected]);
      }
      switch (actions[i].kind) {
        case ActionKind::kForward:
          Forward(actions[i]);
          break;
        case ActionKind::kBackward:
        case ActionKind::kBackwardInput:
          Backward(actions[i]);
          break;
        case ActionKind::kBackwardWeight:
          const auto later = weights_.extract(KeyOf(actions[i]));
          for (const auto& weights : later.mapped()) weights();
          break;
      }
    }
    mail_.Finish();
  }

  Milliseconds waited() const { return mail_.waited(); }

 private:
  using Key = std::pair<int, int>;  // chunk, micro-batch
  using Weights = std::vector<std::function<void()>>;
  // What a forward keeps for its backward.
  struct Pass {
    at::Tensor inputs;
    at::Tensor outputs;  // for the last part, the loss
    ActivationLayout layout;
  };

  static Key KeyOf(const PipelineAction& action) { return {action.chunk, action.micro_batch}; }
  int PartOf(const PipelineAction& action) const {
    return schedule_.shape.PartOf(rank_, action.chunk);
  }
  bool IsLast(int part) const { return part + 1 == schedule_.shape.parts(); }

  // Begins to receive the input of `action`, if its layout is known.
  void Expect(const PipelineAction& action) {
    const int part = PartOf(action);
    if (action.kind == ActionKind::kForward) {
      if (part > 0) mail_.ExpectOutputs({false, part - 1, action.micro_batch});
      return;
    }
    if (action.kind == ActionKind::kBackwardWeight || IsLast(part)) return;
    const auto forward = passes_.find(KeyOf(action));
    if (forward == passes_.end()) return;  // the forward comes first, and then this is retried
    mail_.ExpectGradient({true, part + 1, action.micro_batch}, forward->second.layout);
  }

  void Forward(const PipelineAction& action) {
    const int part = PartOf(action);
    const int micro_batch = action.micro_batch;
    Pass pass;
    if (part == 0) {
      pass.inputs = step_.inputs(micro_batch);
    } else {
      pass.inputs = mail_.Take({false, part - 1, micro_batch});
      if (training_ && pass.inputs.is_floating_point()) pass.inputs.requires_grad_();
    }
    pass.outputs = step_.forward(action.chunk, micro_batch, pass.inputs);
    if (IsLast(part)) {
      pass.outputs = step_.loss(micro_batch, pass.outputs);
    } else {
      pass.layout = LayoutOf(pass.outputs);
      mail_.SendOutputs({false, part, micro_batch}, pass.outputs.detach());
    }
    if (training_) passes_[KeyOf(action)] = std::move(pass);
  }

  void Backward(const PipelineAction& action) {
    const int part = PartOf(action);
    const Key key = KeyOf(action);
    Pass pass = std::move(passes_.at(key));
    passes_.erase(key);
    const at::Tensor gradient = IsLast(part) ? at::ones_like(pass.outputs)
                                             : mail_.Take({true, part + 1, action.micro_batch});
    at::Tensor of_inputs;
    if (action.kind == ActionKind::kBackwardInput) {
      of_inputs = FirstHalf(pass, gradient, weights_[key]);
    } else if (pass.outputs.requires_grad()) {
      torch::autograd::backward({pass.outputs}, {gradient});
      of_inputs = pass.inputs.grad();
    }
    if (part == 0) return;
    // The previous part waits for it even if nothing depends on its outputs.
    if (!of_inputs.defined()) of_inputs = at::zeros_like(pass.inputs);
    mail_.SendGradient({true, part, action.micro_batch}, of_inputs, LayoutOf(pass.inputs));
  }

  // The gradient of the inputs; the rest remains in `weights`. A stage that is recomputed sets that
  // itself.
  static at::Tensor FirstHalf(const Pass& pass, const at::Tensor& gradient, Weights& weights) {
    if (!pass.outputs.requires_grad()) return {};
    const StageBackward halve = [&weights](const at::Tensor& outputs, const at::Tensor& of_outputs,
                                           const at::Tensor& inputs) {
      SplitBackward halves = BackwardOfInputs(outputs, of_outputs, inputs);
      weights.push_back(std::move(halves.weights));
      return std::move(halves.input_gradient);
    };
    const StageBackwardScope recomputed(halve);
    return halve(pass.outputs, gradient, pass.inputs);
  }

  const int rank_;
  const PipelineSchedule schedule_;
  const PipelineStep& step_;
  const bool training_;

  PipelineMail mail_;
  std::map<Key, Pass> passes_;
  std::map<Key, Weights> weights_;
};

PipelineEngine::PipelineEngine(Group& group, PipelineSchedule schedule)
    : group_(group),
      schedule_(std::move(schedule)),
      layouts_(std::make_unique<ActivationLayouts>()) {}

PipelineEngine::~PipelineEngine() = default;

void PipelineEngine::Train(const PipelineStep& step) {
  Play(WithSamples(schedule_, step), step, /*training=*/true);
}

void PipelineEngine::Evaluate(const PipelineStep& step) {
  const at::NoGradGuard no_grad;
  PipelineSchedule forwards = schedule_;
  forwards.shape.micro_batches = static_cast<int>(step.input_sizes.size());
  for (RankActions& actions : forwards.ranks) actions = ForwardActions(forwards.shape);
  Play(WithSamples(std::move(forwards), step), step, /*training=*/false);
}

void PipelineEngine::Play(PipelineSchedule schedule, const PipelineStep& step, bool training) {
  const auto start = std::chrono::steady_clock::now();
  run_ = std::make_unique<Run>(group_, std::move(schedule), step, training, *layouts_);
  run_->Play();
  layouts_->Settle();
  times_ = {std::chrono::steady_clock::now() - start, run_->waited()};
  run_.reset();
}

}  // namespace muster::trainer
