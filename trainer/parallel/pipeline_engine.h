// Runs the schedules of a pipeline over ranks that each have a part of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/pipeline/pipeline_schedule.h"
#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

class ActivationLayouts;

// What a step computes. The engine calls the functions on the thread that called it, in the order
// of the schedule, with chunks of this rank and micro-batches of the step, both from 0; each may
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

// One rank of a pipeline: the member of `group` with number i has the parts i, i + stages, ... of a
// model as its chunks. It runs the actions that a schedule has for it, whichever schedule that is.
// Receives are begun two actions ahead, sends wait for nobody, and a message's memory is freed as
// soon as another message proves that it has arrived.
//
// Activations are sent in their own type; each has a gradient of that type and layout. Ranks tell
// each other sizes and types when they meet new input_sizes (for Use::kOther); from then on a
// message is its elements alone (for Use::kActivations), and a step sends TheoryOfMessages() of
// them.
//
// Not over NCCL, which carries out the messages of two ranks in one order and would wait forever
// for those that are received ahead.
//
// One thread. All members make the same calls. Methods throw what c10d throws when a peer is lost,
// within the group's timeout: exit then, and destroy neither this object nor the group. They throw
// what the functions of the step throw, and std::invalid_argument with one sentence when an output
// is not what it was for other inputs of that size; other ranks then learn of it as they do of a
// lost peer.
class PipelineEngine {
 public:
  // `schedule` is by MakeSchedule(), with a stage for each member. `group` must outlive this.
  PipelineEngine(Group& group, PipelineSchedule schedule);
  ~PipelineEngine();
  PipelineEngine(const PipelineEngine&) = delete;
  PipelineEngine& operator=(const PipelineEngine&) = delete;

  const PipelineShape& shape() const { return schedule_.shape; }

  // Runs all micro-batches forward and backward. Gradients are added to grad() of the parameters
  // that this rank's chunks use. With a schedule that splits the backward, it is split for any
  // model (split_backward.h).
  void Train(const PipelineStep& step);

  // Runs them forward alone, without gradients; there may be any number of them. They follow one
  // another without waiting for a micro-batch to come back.
  void Evaluate(const PipelineStep& step);

  // Of the last call that has returned.
  const PipelineTimes& times() const { return times_; }

 private:
  class Run;  // of a step, defined in the .cc

  void Play(PipelineSchedule schedule, const PipelineStep& step, bool training);

  Group& group_;
  const PipelineSchedule schedule_;
  const std::unique_ptr<ActivationLayouts> layouts_;
  // The step under way, and that of a call that has thrown: its messages must not be destroyed.
  std::unique_ptr<Run> run_;
  PipelineTimes times_;
};

}  // namespace muster::trainer
