// What the ranks of a mesh send one another: the sums and parts of split layers, gradients that
// stages share, and the activations of a pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/models/model.h"
#include "trainer/models/tensor_layers.h"
#include "trainer/pipeline/schedules.h"
#include "trainer/pipeline/simulation.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// The links of a split model's layers over a group of ranks.

// Part i is the group's member i. Counts its traffic as activations, in both directions. `group`
// must outlive it, and should not be used otherwise.
class TensorGroupLinks : public TensorLinks {
 public:
  explicit TensorGroupLinks(Group& group, bool splits_sequence = false)
      : group_(group), splits_sequence_(splits_sequence) {}

  int part() const override { return group_.rank(); }
  int parts() const override { return group_.size(); }
  bool splits_sequence() const override { return splits_sequence_; }
  // In shared memory this rank itself moves and sums the bytes.
  bool runs_aside() const override { return !group_.SharesMemory(); }
  void Max(at::Tensor& tensor) override;
  void Sum(at::Tensor& tensor) override;

 protected:
  Pending BeginGather(const at::Tensor& x) override;
  Pending BeginSum(const at::Tensor& x) override;
  Pending BeginScatter(const at::Tensor& x) override;

 private:
  friend class Rehearsing;
  // Whether to skip the exchange; if so, counts what it would send.
  bool Rehearses(Operation operation, const at::Tensor& x);

  Group& group_;
  const bool splits_sequence_;
  TrafficCount* dry_run_ = nullptr;
};

// While an instance exists, `links` exchange nothing, and no other rank is needed: results have the
// right shapes, made from the rank's own tensors. Counts what would be sent.
class Rehearsing {
 public:
  explicit Rehearsing(TensorGroupLinks& links) : links_(links), count_(links.parts()) {
    links_.dry_run_ = &count_;
  }
  ~Rehearsing() { links_.dry_run_ = nullptr; }
  Rehearsing(const Rehearsing&) = delete;
  Rehearsing& operator=(const Rehearsing&) = delete;

  std::int64_t bytes() const { return count_.Total(Use::kActivations, true).formula_bytes; }

 private:
  TensorGroupLinks& links_;
  TrafficCount count_;
};

// Parameters that stages on several ranks of a pipeline share, such as tied embeddings.

// Parameters, by name, that the stages of exactly these ranks have in common.
struct SharedParameters {
  std::vector<int> ranks;  // two or more, in order
  std::vector<std::string> names;
};

// All parameters that more than one rank of a pipeline uses. `parts` are the stages of each part.
// The same on every rank, in the same order; empty for models without shared parameters, or on one
// rank.
std::vector<SharedParameters> FindShared(const Model& model, const PipelineShape& shape,
                                         const std::vector<StageRange>& parts);

// Replaces each gradient of `parameters` by its sum over the members of `group`, the ranks that
// share these parameters: that is the gradient of the whole model, so their optimizers keep the
// parameters equal, bit for bit. Call it once per step, after all micro-batches have gone backward;
// a missing gradient counts as zero. All members call it with the same parameters. Does nothing in
// a group of one.
void SumSharedGradients(const std::vector<NamedTensor>& parameters, Group& group);

// The layout of the activations that one part of a pipeline sends to the next.

// What a receiver must know about a tensor in advance.
struct ActivationLayout {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes;
  // Images with their channels innermost are sent and received in that layout, as convolutions are
  // faster then.
  bool channels_last = false;
};

ActivationLayout LayoutOf(const at::Tensor& tensor);

// "2 x 16 x 64 Float".
std::string Described(const ActivationLayout& layout);

// An uninitialized tensor of that layout.
at::Tensor EmptyOf(const ActivationLayout& layout, const at::Device& device);

// The elements of `tensor`, which has the type and sizes of `layout`, contiguous and in `layout`'s
// memory order. Shares memory with `tensor` unless its layout differs.
at::Tensor ElementsOf(const at::Tensor& tensor, const ActivationLayout& layout);

// A layout as a message: kHeaderNumbers integers, on the CPU. Throws std::invalid_argument with one
// sentence if it has more than 12 dimensions.
inline constexpr std::int64_t kHeaderNumbers = 15;
at::Tensor HeaderOf(const ActivationLayout& layout);
ActivationLayout ReadHeader(const at::Tensor& header);

// The layouts that a rank knows, by what determines them. Both ends of a message must agree on
// whether its layout is known, so a step's discoveries only count from Settle() on.
class ActivationLayouts {
 public:
  // What part `part` computes from inputs of `input_sizes`, in training or not.
  struct Key {
    bool training = true;
    int part = 0;
    std::vector<std::int64_t> input_sizes;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Null if it was unknown at the last Settle(). Valid until the next.
  const ActivationLayout* Find(const Key& key) const;
  void Learn(Key key, ActivationLayout layout) { learned_[std::move(key)] = std::move(layout); }
  // Call it at the end of a step. Forgets everything once there is too much.
  void Settle();

 private:
  std::map<Key, ActivationLayout> known_;
  std::map<Key, ActivationLayout> learned_;
};

// The origin of a message in a step: part `part`'s result for a micro-batch, its outputs or the
// gradient of its inputs.
struct PipelinePlace {
  bool gradient = false;
  int part = 0;
  int micro_batch = 0;
  friend auto operator<=>(const PipelinePlace&, const PipelinePlace&) = default;
};

// Sends and receives what a schedule requires. It knows all ranks' actions, and so which of its
// messages have arrived when it receives one: if a peer sends something computed after it received
// another message, that message has arrived. Their memory is then freed. One thread; throws as
// PipelineEngine does.
class PipelineMail {
 public:
  // The references must outlive it. `input_sizes`: see PipelineStep.
  PipelineMail(Group& group, const PipelineSchedule& schedule,
               const std::vector<std::vector<std::int64_t>>& input_sizes, bool training,
               ActivationLayouts& layouts);

  // Begins to receive the outputs of a part, or the gradient of inputs, for which that part will
  // use `layout`. No effect if already begun.
  void ExpectOutputs(const PipelinePlace& from);
  void ExpectGradient(const PipelinePlace& from, const ActivationLayout& layout);
  // Waits for an expected message.
  at::Tensor Take(const PipelinePlace& from);

  // Sends a result of this rank to the rank that needs it. `layout` is that of the inputs of a
  // gradient.
  void SendOutputs(const PipelinePlace& from, const at::Tensor& outputs);
  void SendGradient(const PipelinePlace& from, const at::Tensor& gradient,
                    const ActivationLayout& layout);

  // Waits until everything sent has arrived.
  void Finish();

  Milliseconds waited() const { return waited_; }

 private:
  struct Incoming {
    at::Tensor tensor;    // undefined while its layout is unknown
    at::Tensor elements;  // what is received into: the tensor, or a header
    PendingWork work;     // null in a pipeline of one rank
  };
  struct Outgoing {
    int to = 0;
    int used_by = 0;  // the peer's action that waits for it, as an index in the peer's order
    at::Tensor elements;
    PendingWork work;
  };

  ActivationLayouts::Key KeyOf(const PipelinePlace& from) const;
  // The place that uses the result of `from`.
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

  std::map<PipelinePlace, int> order_;  // each pass's index in its rank's order
  std::map<PipelinePlace, Incoming> incoming_;
  std::vector<Outgoing> outgoing_;  // oldest first
  Milliseconds waited_{0};
};

}  // namespace muster::trainer
