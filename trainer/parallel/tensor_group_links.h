// The links of a split model's layers over a group of ranks.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/models/tensor_links.h"

namespace muster::trainer {

// Part i is the group's member i. What it sends counts as activations, in both directions. `group`
// must outlive it, and should be used by nobody else.
class TensorGroupLinks : public TensorLinks {
 public:
  explicit TensorGroupLinks(Group& group) : group_(group) {}

  int part() const override { return group_.rank(); }
  int parts() const override { return group_.size(); }
  at::Tensor Copy(const at::Tensor& x) override;
  at::Tensor Reduce(const at::Tensor& x) override;
  at::Tensor Gather(const at::Tensor& x, std::int64_t dimension) override;
  void Max(at::Tensor& tensor) override;
  void Sum(at::Tensor& tensor) override;

 private:
  Group& group_;
};

}  // namespace muster::trainer
