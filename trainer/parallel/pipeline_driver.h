// Ranks that each have a part of the model, and whatever brings them to work together.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// What a step computes. A driver calls the functions on the thread that called it, in an order
// of its own, with chunks of this rank and micro-batches of the step, both from 0; each may
// set up what it needs (autocast, seeds) for itself alone.
struct PipelineStep {
  // The sizes of the inputs of each micro-batch, with samples along dimension 0: the same on all
  // ranks, though only the first part has the inputs. Ranks infer from them which sizes and types
  // activations have. There may be fewer than the schedule has micro-batches, and some without
  // samples: those that are missing or empty are left out, and no function is called for them.
  std::vector<std::vector<std::int64_t>> input_sizes;

  // The inputs of a micro-batch. Called on the rank of the first part alone.
  std::function<at::Tensor(int micro_batch)> inputs;
  // The outputs of a chunk: one tensor of any type and of up to 12 dimensions. For equal
  // input_sizes it must always have the same sizes and type.
  std::function<at::Tensor(int chunk, int micro_batch, const at::Tensor& inputs)> forward;
  // What is made of the model's outputs: a single number to run backward from, already divided by
  // whatever is to be divided. Called on the rank of the last part alone, right after forward().
  // Evaluate() ignores the result.
  std::function<at::Tensor(int micro_batch, const at::Tensor& outputs)> loss;
};

// How long this rank has taken for a step, and how much of that it has waited for other ranks: the
// measured counterpart of TheoryOfBubble().
struct PipelineTimes {
  Milliseconds step{0};
  Milliseconds waited{0};
};

// One rank of a pipeline. One thread. All members make the same calls. Methods throw what c10d
// throws when a peer is lost, within the group's timeout: exit then, and destroy neither this
// object nor the group. They throw what the functions of the step throw; other ranks then learn of
// it as they do of a lost peer, or as a driver says.
class PipelineDriver {
 public:
  virtual ~PipelineDriver() = default;

  // Runs all micro-batches forward and backward. Gradients are added to grad() of the parameters
  // that this rank's chunks use.
  virtual void Train(const PipelineStep& step) = 0;
  // Runs them forward alone, without gradients; there may be any number of them. They follow one
  // another without waiting for a micro-batch to come back.
  virtual void Evaluate(const PipelineStep& step) = 0;

  // Of the last call that has returned.
  virtual const PipelineTimes& times() const = 0;
};

// Whether `step` has a sample in the micro-batch.
inline bool HasSamples(const PipelineStep& step, int micro_batch) {
  const auto index = static_cast<std::size_t>(micro_batch);
  return index < step.input_sizes.size() && !step.input_sizes[index].empty() &&
         step.input_sizes[index][0] > 0;
}

}  // namespace muster::trainer
