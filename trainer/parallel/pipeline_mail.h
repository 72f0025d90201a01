// The messages of a rank of a pipeline in one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/parallel/activation_layout.h"
#include "trainer/pipeline/pipeline_schedule.h"
#include "trainer/pipeline/simulation.h"

namespace muster::trainer {

// Where in a step a message comes about: what the part `part` has computed of a micro-batch, its
// outputs or the gradient of its inputs.
struct PipelinePlace {
  bool gradient = false;
  int part = 0;
  int micro_batch = 0;
  friend auto operator<=>(const PipelinePlace&, const PipelinePlace&) = default;
};

// Sends and receives what a schedule makes ranks exchange. It knows all ranks' actions, and so
// which of its messages must have arrived when it gets one: when a peer sends something that it
// computes after it has received another thing, that other thing has arrived. The memory of those
// is freed. One thread; throws as PipelineEngine does.
class PipelineMail {
 public:
  // The references must outlive it. `input_sizes`: see PipelineStep.
  PipelineMail(Group& group, const PipelineSchedule& schedule,
               const std::vector<std::vector<std::int64_t>>& input_sizes, bool training,
               ActivationLayouts& layouts);

  // Begins to receive the outputs of a part, or the gradient of inputs, for which that part will
  // have `layout`. No effect when that has begun.
  void ExpectOutputs(const PipelinePlace& from);
  void ExpectGradient(const PipelinePlace& from, const ActivationLayout& layout);
  // Waits for what was expected.
  at::Tensor Take(const PipelinePlace& from);

  // Sends what this rank has computed to the rank that needs it. `layout` is that of a gradient's
  // inputs.
  void SendOutputs(const PipelinePlace& from, const at::Tensor& outputs);
  void SendGradient(const PipelinePlace& from, const at::Tensor& gradient,
                    const ActivationLayout& layout);

  // Waits until all that was sent has arrived.
  void Finish();

  Milliseconds waited() const { return waited_; }

 private:
  struct Incoming {
    at::Tensor tensor;    // not defined while its layout is not known
    at::Tensor elements;  // what is received into: the tensor, or a header
    PendingWork work;     // null in a pipeline of one rank
  };
  struct Outgoing {
    int to = 0;
    int used_by = 0;  // the peer's action that waits for it, by its place in the peer's order
    at::Tensor elements;
    PendingWork work;
  };

  ActivationLayouts::Key KeyOf(const PipelinePlace& from) const;
  // The part that needs what was computed at `from`, and its place.
  PipelinePlace UserOf(const PipelinePlace& from) const;
  int TagOf(const PipelinePlace& from, bool header) const;
  int PlaceInOrder(const PipelinePlace& place) const;
  void Receive(const PipelinePlace& from, Incoming& incoming);
  void Post(const PipelinePlace& from, const at::Tensor& elements);
  void Wait(PendingWork& work);
  void WaitForOldest(std::size_t most);

  Group& group_;
  const PipelineSchedule& schedule_;
  const std::vector<std::vector<std::int64_t>>& input_sizes_;
  const bool training_;
  ActivationLayouts& layouts_;

  std::map<PipelinePlace, int> order_;  // each rank's passes by their places in its order
  std::map<PipelinePlace, Incoming> incoming_;
  std::vector<Outgoing> outgoing_;  // the oldest first
  Milliseconds waited_{0};
};

}  // namespace muster::trainer
