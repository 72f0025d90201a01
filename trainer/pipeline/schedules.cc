#include "trainer/pipeline/schedules.h"

#include <algorithm>

namespace muster::trainer {
namespace {

// Appends passes of one kind, first micro-batch first.
class InTurn {
 public:
  InTurn(ActionKind kind, RankActions& actions) : kind_(kind), actions_(actions) {}

  void Next() { actions_.push_back({kind_, /*chunk=*/0, count_++}); }
  int count() const { return count_; }

 private:
  const ActionKind kind_;
  RankActions& actions_;
  int count_ = 0;
};

}  // namespace

RankActions GPipeActions(const PipelineShape& shape) {
  RankActions actions;
  InTurn forward(ActionKind::kForward, actions);
  InTurn backward(ActionKind::kBackward, actions);
  while (forward.count() < shape.micro_batches) forward.Next();
  while (backward.count() < shape.micro_batches) backward.Next();
  return actions;
}

RankActions OneForwardOneBackwardActions(const PipelineShape& shape, int rank) {
  RankActions actions;
  InTurn forward(ActionKind::kForward, actions);
  InTurn backward(ActionKind::kBackward, actions);
  const int ahead = std::min(shape.micro_batches, shape.stages - 1 - rank);
  while (forward.count() < ahead) forward.Next();
  while (backward.count() < shape.micro_batches) {
    if (forward.count() < shape.micro_batches) forward.Next();
    backward.Next();
  }
  return actions;
}

RankActions InterleavedActions(const PipelineShape& shape, int rank) {
  const int all = shape.micro_batches * shape.chunks;
  const int group = shape.stages * shape.chunks;
  // The pass with number `pass`: a group of `stages` micro-batches goes through one chunk, then
  // through the next; behind the last chunk comes the next group.
  const auto action = [&](ActionKind kind, int pass) {
    const int chunk = pass % group / shape.stages;
    return PipelineAction{kind, kind == ActionKind::kForward ? chunk : shape.chunks - 1 - chunk,
                          pass / group * shape.stages + pass % shape.stages};
  };
  const int ahead =
      std::min(all, 2 * (shape.stages - 1 - rank) + (shape.chunks - 1) * shape.stages);
  RankActions actions;
  int forwards = 0;
  while (forwards < ahead) actions.push_back(action(ActionKind::kForward, forwards++));
  for (int backwards = 0; backwards < all; ++backwards) {
    if (forwards < all) actions.push_back(action(ActionKind::kForward, forwards++));
    actions.push_back(action(ActionKind::kBackward, backwards));
  }
  return actions;
}

RankActions ZeroBubbleActions(const PipelineShape& shape, int rank) {
  RankActions actions;
  InTurn forward(ActionKind::kForward, actions);
  InTurn input(ActionKind::kBackwardInput, actions);
  InTurn weight(ActionKind::kBackwardWeight, actions);
  const int ahead = std::min(shape.micro_batches, shape.stages - 1 - rank);
  while (forward.count() < ahead) forward.Next();
  while (input.count() < shape.micro_batches) {
    if (forward.count() < shape.micro_batches) forward.Next();
    input.Next();
    if (input.count() > rank) weight.Next();
  }
  while (weight.count() < shape.micro_batches) weight.Next();
  return actions;
}

RankActions ForwardActions(const PipelineShape& shape) {
  RankActions actions;
  for (int first = 0; first < shape.micro_batches; first += shape.stages) {
    const int end = std::min(first + shape.stages, shape.micro_batches);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int i = first; i < end; ++i) actions.push_back({ActionKind::kForward, chunk, i});
    }
  }
  return actions;
}

}  // namespace muster::trainer
