#include "trainer/pipeline/theory.h"

#include <algorithm>
#include <utility>

namespace muster::trainer {
namespace {

BubbleTheory WithIdle(Milliseconds idle, const PipelineShape& shape, const PassTimes& times,
                      std::string formula) {
  const Milliseconds work = times.passes() * static_cast<double>(shape.micro_batches);
  return {idle / (work + idle), std::move(formula)};
}

}  // namespace

BubbleTheory TheoryOfBubble(PipelineKind kind, const PipelineShape& shape, const PassTimes& times) {
  const double others = shape.stages - 1;
  switch (kind) {
    case PipelineKind::kGPipe:
    case PipelineKind::kOneForwardOneBackward:
      return WithIdle(others * times.passes(), shape, times, "(p - 1)/(m + p - 1)");
    case PipelineKind::kInterleaved:
      return WithIdle(others * times.passes() / shape.chunks, shape, times,
                      "(p - 1)/(v m + p - 1)");
    case PipelineKind::kZeroBubble:
      break;
  }
  if (shape.micro_batches < shape.stages) {
    return {std::nullopt, "only for at least as many micro-batches as stages"};
  }
  const Milliseconds one = std::max({times.forward, times.backward_input,
                                     times.forward + times.backward_input - times.backward_weight});
  const bool equal =
      times.forward == times.backward_input && times.forward == times.backward_weight;
  return WithIdle(
      others * one, shape, times,
      equal ? "(p - 1)/(3 m + p - 1)" : "T/(m (F + B + W) + T), T = (p - 1) max(F, B, F + B - W)");
}

int TheoryOfLive(PipelineKind kind, const PipelineShape& shape, int rank) {
  const int behind = shape.stages - 1 - rank;  // ranks
  switch (kind) {
    case PipelineKind::kGPipe:
      return shape.micro_batches;
    case PipelineKind::kOneForwardOneBackward:
      return std::min(shape.micro_batches, behind + 1);
    case PipelineKind::kInterleaved:
      return std::min(shape.micro_batches * shape.chunks,
                      2 * behind + (shape.chunks - 1) * shape.stages + 1);
    case PipelineKind::kZeroBubble:
      return std::min(shape.micro_batches, shape.stages);
  }
  return 0;
}

std::string FormulaOfLive(PipelineKind kind) {
  switch (kind) {
    case PipelineKind::kGPipe:
      return "m";
    case PipelineKind::kOneForwardOneBackward:
      return "min(m, p - rank)";
    case PipelineKind::kInterleaved:
      return "min(m, (2 (p - 1 - rank) + (v - 1) p + 1)/v)";
    case PipelineKind::kZeroBubble:
      return "min(m, p)";
  }
  return "";
}

int TheoryOfMessages(const PipelineShape& shape, int rank) {
  if (shape.stages == 1) return 0;
  int messages = 0;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const int part = shape.PartOf(rank, chunk);
    messages += (part + 1 < shape.parts() ? 1 : 0) + (part > 0 ? 1 : 0);
  }
  return messages * shape.micro_batches;
}

}  // namespace muster::trainer
