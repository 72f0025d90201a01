// The links of a split model's layers over a group of ranks.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/traffic.h"
#include "trainer/models/tensor_links.h"

namespace muster::trainer {

// Part i is the group's member i. What it sends counts as activations, in both directions. `group`
// must outlive it, and should be used by nobody else.
class TensorGroupLinks : public TensorLinks {
 public:
  explicit TensorGroupLinks(Group& group, bool splits_sequence = false)
      : group_(group), splits_sequence_(splits_sequence) {}

  int part() const override { return group_.rank(); }
  int parts() const override { return group_.size(); }
  bool splits_sequence() const override { return splits_sequence_; }
  // In shared memory it is this rank that moves and adds up the bytes.
  bool runs_aside() const override { return !group_.SharesMemory(); }
  void Max(at::Tensor& tensor) override;
  void Sum(at::Tensor& tensor) override;

 protected:
  Pending BeginGather(const at::Tensor& x) override;
  Pending BeginSum(const at::Tensor& x) override;
  Pending BeginScatter(const at::Tensor& x) override;

 private:
  friend class Rehearsing;
  // Whether nothing is to be exchanged; if so, counts what would be.
  bool Rehearses(Operation operation, const at::Tensor& x);

  Group& group_;
  const bool splits_sequence_;
  TrafficCount* rehearsal_ = nullptr;
};

// While one exists, `links` exchange nothing, and no other rank is needed: tensors of the right
// shapes come of what a rank has itself. Counts what would be sent.
class Rehearsing {
 public:
  explicit Rehearsing(TensorGroupLinks& links) : links_(links), count_(links.parts()) {
    links_.rehearsal_ = &count_;
  }
  ~Rehearsing() { links_.rehearsal_ = nullptr; }
  Rehearsing(const Rehearsing&) = delete;
  Rehearsing& operator=(const Rehearsing&) = delete;

  std::int64_t bytes() const { return count_.Total(Use::kActivations, true).formula_bytes; }

 private:
  TensorGroupLinks& links_;
  TrafficCount count_;
};

}  // namespace muster::trainer
