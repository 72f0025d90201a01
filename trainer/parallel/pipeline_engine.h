// Runs the schedules of a pipeline over ranks that each have a part of the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/pipeline/schedules.h"
#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// Ranks that each have a part of the model, and the interface of the drivers that run them.

// What a step computes. A driver calls the functions on the thread that called it, in its own
// order, with chunks of this rank and micro-batches of the step, both counted from 0; each call may
// set up what it needs (autocast, seeds) locally.
struct PipelineStep {
  // The sizes of the inputs of each micro-batch, with samples along dimension 0: the same on all
  // ranks, though only the first part has the inputs. Ranks infer the sizes and types of
  // activations from them. There may be fewer than the schedule has micro-batches, and some may be
  // empty: missing and empty ones are skipped, without calling any function for them.
  std::vector<std::vector<std::int64_t>> input_sizes;

  // The inputs of a micro-batch. Called only on the rank of the first part.
  std::function<at::Tensor(int micro_batch)> inputs;
  // The outputs of a chunk: one tensor of any type and of up to 12 dimensions. Equal input_sizes
  // must always give the same sizes and type.
  std::function<at::Tensor(int chunk, int micro_batch, const at::Tensor& inputs)> forward;
  // The loss from the model's outputs: a single number to run backward from, already scaled. Called
  // only on the rank of the last part, right after forward(). Evaluate() ignores the result.
  std::function<at::Tensor(int micro_batch, const at::Tensor& outputs)> loss;
};

// This rank's time for a step, and the part of it spent waiting for other ranks: the measured
// counterpart of TheoryOfBubble().
struct PipelineTimes {
  Milliseconds step{0};
  Milliseconds waited{0};
};

// One rank of a pipeline. One thread. All members make the same calls. If a peer is lost, methods
// throw what c10d throws, within the group's timeout: then exit without destroying this object or
// the group. They throw what the step's functions throw; other ranks see that as a lost peer,
// unless a driver specifies otherwise.
class PipelineDriver {
 public:
  virtual ~PipelineDriver() = default;

  // Runs all micro-batches forward and backward. Adds gradients to grad() of the parameters of this
  // rank's chunks.
  virtual void Train(const PipelineStep& step) = 0;
  // Runs any number of micro-batches forward only, without gradients, one directly after another.
  virtual void Evaluate(const PipelineStep& step) = 0;

  // Of the last completed call.
  virtual const PipelineTimes& times() const = 0;
};

// Whether the micro-batch has a sample in `step`.
inline bool HasSamples(const PipelineStep& step, int micro_batch) {
  const auto index = static_cast<std::size_t>(micro_batch);
  return index < step.input_sizes.size() && !step.input_sizes[index].empty() &&
         step.input_sizes[index][0] > 0;
}

class ActivationLayouts;

// One rank of a pipeline: member i of `group` has the parts i, i + stages, ... of a model as its
// chunks. Runs the actions of any schedule. Receives are begun two actions ahead, sends do not
// wait, and a message's memory is freed as soon as another message proves that it has arrived.
//
// Activations are sent in their own type; gradients have the same type and layout. Ranks exchange
// sizes and types when they encounter new input_sizes (counted as Use::kOther); from then on a
// message contains only its elements (Use::kActivations), and a step sends one each way for each
// micro-batch and border between two parts on different ranks.
//
// Not over NCCL, which executes the messages between two ranks in a single order, and would
// deadlock on receives begun ahead.
//
// Train() and Evaluate() also throw std::invalid_argument with one sentence if an output differs in
// shape or type from earlier ones for inputs of that size. With a schedule that splits the
// backward, it is split for any model (autograd_graph.h).
class PipelineEngine : public PipelineDriver {
 public:
  // `schedule` is from MakeSchedule(), with a stage for each member. `group` must outlive this.
  PipelineEngine(Group& group, PipelineSchedule schedule);
  ~PipelineEngine() override;
  PipelineEngine(const PipelineEngine&) = delete;
  PipelineEngine& operator=(const PipelineEngine&) = delete;

  const PipelineShape& shape() const { return schedule_.shape; }

  void Train(const PipelineStep& step) override;
  void Evaluate(const PipelineStep& step) override;
  const PipelineTimes& times() const override { return times_; }

 private:
  class Run;  // a step in progress, defined in the .cc

  void Play(PipelineSchedule schedule, const PipelineStep& step, bool training);

  Group& group_;
  const PipelineSchedule schedule_;
  const std::unique_ptr<ActivationLayouts> layouts_;
  // The step in progress, or that of a call that has thrown: its messages must not be destroyed.
  std::unique_ptr<Run> run_;
  PipelineTimes times_;
};

}  // namespace muster::trainer
