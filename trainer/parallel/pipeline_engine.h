// Runs the schedules of a pipeline over ranks that each have a part of the model.
#pragma once

#include <memory>

#include "trainer/comm/group.h"
#include "trainer/parallel/pipeline_driver.h"
#include "trainer/pipeline/pipeline_schedule.h"

namespace muster::trainer {

class ActivationLayouts;

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
// Train() and Evaluate() also throw std::invalid_argument with one sentence when an output is not
// what it was for other inputs of that size. With a schedule that splits the backward, it is split
// for any model (split_backward.h).
class PipelineEngine : public PipelineDriver {
 public:
  // `schedule` is by MakeSchedule(), with a stage for each member. `group` must outlive this.
  PipelineEngine(Group& group, PipelineSchedule schedule);
  ~PipelineEngine() override;
  PipelineEngine(const PipelineEngine&) = delete;
  PipelineEngine& operator=(const PipelineEngine&) = delete;

  const PipelineShape& shape() const { return schedule_.shape; }

  void Train(const PipelineStep& step) override;
  void Evaluate(const PipelineStep& step) override;
  const PipelineTimes& times() const override { return times_; }

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
