// Sums tensors over the ranks, with the transport that the group uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/comm/shm_options.h"
#include "trainer/comm/waiting.h"

namespace muster::trainer {

// With kGloo and kNccl, uses c10d's all-reduce. With kShm, sums through shared memory among the
// ranks of a host; if there are several hosts, their leaders (see HostLayout) then sum over Gloo
// and pass the result to the other ranks through shared memory. Every rank gets the same bits.
//
// All ranks must create, call and destroy their AllReducers in the same order, each from one thread
// at a time. Its operations may run concurrently with those of the Group with kShm only.
class AllReducer {
 public:
  // `largest_bytes` is the expected size of the largest tensor, and determines the size of the
  // segment (larger tensors are summed in pieces). `group` must outlive this object. Throws
  // std::runtime_error with one sentence, on every rank, when one of them cannot get the memory,
  // and what c10d throws.
  AllReducer(Group& group, std::size_t largest_bytes, const ShmOptions& options = {});
  ~AllReducer();
  AllReducer(const AllReducer&) = delete;
  AllReducer& operator=(const AllReducer&) = delete;

  // Replaces `tensor` (contiguous; float, double, half or bfloat16; on the group's device) with
  // `scale` times its sum over the ranks. On CPUs, half and bfloat16 are summed in float. Blocks.
  // When a peer on this host is gone or does not come in time, throws std::runtime_error that names
  // its rank and pid; also throws what c10d throws. The object cannot be used after that.
  void Sum(at::Tensor& tensor, double scale = 1.0, Waiting waiting = Waiting::kSleep);

  // Bytes that this rank has read from other ranks' memory. nullopt when c10d carries tensors,
  // between all ranks or between hosts, as it does not count.
  std::optional<std::int64_t> counted_bytes() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace muster::trainer
