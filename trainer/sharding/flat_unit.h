// Parameters in one piece of memory, of which each rank owns an equal part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/named_tensor.h"

namespace muster::trainer {

// What of a parameter lies in a rank's part of a unit.
struct FlatSlice {
  std::size_t parameter = 0;  // of the unit
  std::int64_t begin = 0;     // in the parameter's elements, in the order of its memory
  std::int64_t count = 0;
  std::int64_t at = 0;  // in the rank's part
};

// Parameters that are views into one flat tensor, padded so that the ranks of a group can share it:
// rank r owns the r-th part. Gathering gives every rank all parts. Each parameter keeps its
// identity, sizes and layout, so that module, names and autograd go on with it; what autograd has
// saved of it becomes valid again when a unit that was freed is gathered. One thread.
//
// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", Rajbhandari et al., SC
// 2020; flat parameters: "PyTorch FSDP", Zhao et al., VLDB 2023.
class FlatUnit {
 public:
  // All `parameters` are dense, of one real type and on the group's device, and have the same
  // values on all ranks. `own` says whether the rank keeps a copy of its part apart from the whole,
  // which Free() needs. Throws std::invalid_argument with one sentence when they are of several
  // types.
  FlatUnit(std::vector<NamedTensor> parameters, Group& group, bool own);
  ~FlatUnit();
  FlatUnit(const FlatUnit&) = delete;
  FlatUnit& operator=(const FlatUnit&) = delete;

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // Of the padded whole.
  std::int64_t bytes() const { return static_cast<std::int64_t>(elements_ * element_size_); }
  // This rank's part, for the optimizer. Once it has changed, call Forget().
  const at::Tensor& part() const { return part_; }
  const std::vector<FlatSlice>& slices() const { return slices_; }

  // Whether the parameters have the ranks' parts for values.
  bool here() const { return here_; }
  // The parameters no longer have the values of the parts; their memory stays.
  void Forget() { here_ = false; }
  // And gives the memory back. Not while something needs the parameters' values.
  void Free();
  // Begins to gather, unless they are here; then makes sure that they are. Every rank calls it.
  void StartGather();
  void Gather();

  // This rank's part of the mean over the ranks of the parameters' gradients, which are taken away;
  // a parameter without one counts as 0. Every rank calls it.
  at::Tensor ReduceGradients();

  // The part of `whole`, one tensor for each parameter with its sizes, that this rank owns, flat as
  // part(); and back, which every rank calls: of all ranks' parts, tensors with the parameters'
  // sizes and layouts.
  at::Tensor PartOf(const std::vector<at::Tensor>& whole) const;
  std::vector<at::Tensor> WholeOf(const at::Tensor& part) const;

 private:
  // Of a flat tensor, what belongs to a parameter, with its sizes and layout.
  at::Tensor ViewOf(const at::Tensor& flat, std::size_t parameter) const;
  at::Tensor OwnPartOf(const at::Tensor& flat) const;

  const std::vector<NamedTensor> parameters_;
  Group& group_;
  std::vector<std::int64_t> offsets_;
  std::int64_t elements_ = 0;  // padded
  std::int64_t part_elements_ = 0;
  std::size_t element_size_ = 0;
  at::Tensor flat_;
  at::Tensor part_;
  std::vector<FlatSlice> slices_;
  bool here_ = true;
  bool allocated_ = true;
  PendingWork arriving_;
};

}  // namespace muster::trainer
