// The links of a split model's layers over a group of ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
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
  Group& group_;
  const bool splits_sequence_;
};

}  // namespace muster::trainer
