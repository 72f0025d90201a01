// Parameters in one contiguous tensor, of which each rank owns an equal part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// The slice of a parameter in a rank's part of a unit.
struct FlatSlice {
  std::size_t parameter = 0;  // index in the unit
  std::int64_t begin = 0;     // in the parameter's elements, in memory order
  std::int64_t count = 0;
  std::int64_t at = 0;  // offset in the rank's part
};

// Parameters that are views into one flat tensor, padded so that the ranks of a group can share it:
// rank r owns the r-th part. Gathering gives every rank all parts. Each parameter keeps its
// identity, sizes and layout, so that module, names and autograd are not affected; tensors saved by
// autograd become valid again when a freed unit is gathered. One thread.
//
// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", Rajbhandari et al., SC
// 2020; flat parameters: "PyTorch FSDP", Zhao et al., VLDB 2023.
class FlatUnit {
 public:
  // All `parameters` are dense, of one floating-point type and on the group's device, and have the
  // same values on all ranks. `own`: whether the rank keeps a separate copy of its part, which
  // Free() needs. Throws std::invalid_argument with one sentence if they are of several types.
  FlatUnit(std::vector<NamedTensor> parameters, Group& group, bool own);
  ~FlatUnit();
  FlatUnit(const FlatUnit&) = delete;
  FlatUnit& operator=(const FlatUnit&) = delete;

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // The size of the padded whole.
  std::int64_t bytes() const { return static_cast<std::int64_t>(elements_ * element_size_); }
  // This rank's part, for the optimizer. After changing it, call Forget().
  const at::Tensor& part() const { return part_; }
  const std::vector<FlatSlice>& slices() const { return slices_; }

  // Whether the parameters currently have the values of all ranks' parts.
  bool here() const { return here_; }
  // The parameters no longer have the parts' values; their memory stays.
  void Forget() { here_ = false; }
  // Also frees the memory. Not while the parameters' values are needed.
  void Free();
  // Starts gathering, unless the values are here; then waits for them. Every rank calls both.
  void StartGather();
  void Gather();

  // This rank's part of the mean over the ranks of the parameters' gradients, which are removed; a
  // missing one counts as 0. Every rank calls it.
  at::Tensor ReduceGradients();

  // This rank's part of `whole`, one tensor per parameter with its sizes, flat like part(); and the
  // inverse, which every rank calls: from all ranks' parts to tensors with the parameters' sizes
  // and layouts.
  at::Tensor PartOf(const std::vector<at::Tensor>& whole) const;
  std::vector<at::Tensor> WholeOf(const at::Tensor& part) const;

 private:
  // The view of a parameter in a flat tensor, with its sizes and layout.
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
