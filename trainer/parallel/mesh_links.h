// The links of a split model's layers over a group of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/host/operation_log.h"
#include "trainer/models/model.h"
#include "trainer/models/tensor_layers.h"
#include "trainer/pipeline/schedules.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

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

// How many bytes the ranks of a split GPT exchange, by formula.

// A rank's part of a GPT, and the size of a pass.
struct SplitGpt {
  int ranks = 1;                // that share each layer
  std::int64_t layers = 0;      // blocks
  std::int64_t width = 0;       // of an embedding
  bool embeds = true;           // has the token embeddings: the first stages of a pipeline
  bool scores = true;           // has the head: the last ones
  std::int64_t tokens = 0;      // B x T of a micro-batch
  std::int64_t bytes = 4;       // of an activation
  std::int64_t loss_bytes = 4;  // of a score when the loss is computed: at least float32's
  bool splits_sequence = false;
};

// Bytes that a rank sends in each pass of a micro-batch. With the n ranks' activations of a =
// tokens x width x bytes, an all-reduce sends 2(n-1)/n a (RingBytes). Each block does two of them
// forward, after its attention and its MLP, and two backward, before them: Shoeybi et al.,
// "Megatron-LM", 2019, figure 4. The embeddings do one forward, and the head one backward; and the
// cross entropy sends 3 numbers a token forward. Recomputing blocks costs their forward again.
//
// If the sequence is split, each all-reduce is divided into its two halves, one where the layers
// begin and one where they end, in both forward and backward passes; and inputs of which a rank has
// kept only its part are gathered once more in the backward pass: Korthikanti et al., "Reducing
// Activation Recomputation in Large Transformer Models", 2022. Gradients of whole parameters are
// extra.
struct SplitBytes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};
SplitBytes BytesOfSplit(const SplitGpt& gpt);

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

}  // namespace muster::trainer
