// Sums of tensors over the ranks, by the means that the process group picked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "trainer/comm/process_group.h"
#include "trainer/comm/shm_options.h"
#include "trainer/comm/waiting.h"

namespace muster::trainer {

// With kGloo and kNccl: c10d's all-reduce. With kShm: through shared memory among the ranks of a
// host, and when there are several hosts, by Gloo between the first ranks of each, and through
// shared memory again to the others. Every rank gets the same bits.
//
// All ranks make it, call it and drop it in the same order, from one thread at a time each. Its
// operations may run beside those of the ProcessGroup with kShm only.
class AllReducer {
 public:
  // `largest_bytes` is that of the largest tensor to come (larger ones work, in pieces) and sizes
  // the segment. `group` must outlive this object. Throws std::runtime_error with one sentence, on
  // every rank, when the memory cannot be had on one of them, and what c10d throws.
  AllReducer(ProcessGroup& group, std::size_t largest_bytes, const ShmOptions& options = {});
  ~AllReducer();
  AllReducer(const AllReducer&) = delete;
  AllReducer& operator=(const AllReducer&) = delete;

  // Replaces `tensor` (contiguous, float, double, half or bfloat16, on the group's device) by
  // `scale` times its sum over the ranks. Half and bfloat16 are added up in float. Blocks. Throws
  // std::runtime_error that names the rank and its pid when a peer on this host is gone or stopped,
  // and what c10d throws; after that it is of no more use.
  void Sum(at::Tensor& tensor, double scale = 1.0, Waiting waiting = Waiting::kSleep);

  // Bytes that this rank took from other ranks' memory so far, plus those the leader sent to other
  // hosts. Counted with kShm; with kGloo and kNccl it is what a ring sends (see traffic.h).
  std::int64_t moved_bytes() const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace muster::trainer
