// Sums tensors over the ranks of a group whose members share hosts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "trainer/comm/group_facts.h"
#include "trainer/comm/shared_segment.h"
#include "trainer/comm/shm_options.h"
#include "trainer/comm/waiting.h"

namespace muster::trainer {

// Sums through shared memory among the ranks of a host; if there are several hosts, their leaders
// (see HostLayout) then sum over Gloo and pass the result to the other ranks through shared memory.
// Every rank gets the same bits.
//
// All members of the group must create, call and destroy their AllReducers in the same order, each
// from one thread at a time. Its operations may run concurrently with those of c10d's group.
class AllReducer {
 public:
  // The shared memory that it takes at the least, with `members` ranks on a host.
  static std::size_t LeastBytes(std::size_t members);

  // `largest_bytes` is the expected size of the largest tensor, and determines the size of the
  // segment (larger tensors are summed in pieces). `gather` asks the members; `name` is new to the
  // group, for its leaders to meet under. Throws std::runtime_error with one sentence, on every
  // rank, when one of them cannot get the memory, and what c10d throws.
  AllReducer(const GroupFacts& facts, std::shared_ptr<GroupMeter> meter, const GatherText& gather,
             const std::string& name, std::size_t largest_bytes, const ShmOptions& options);
  ~AllReducer();
  AllReducer(const AllReducer&) = delete;
  AllReducer& operator=(const AllReducer&) = delete;

  // Replaces `tensor` (contiguous, on the CPU; float, double, half or bfloat16) with `scale` times
  // its sum over the members; half and bfloat16 are summed in float. Blocks. Counts for `use` the
  // bytes that this rank has read from other ranks' memory; with several hosts they are not known.
  // When a peer on this host is gone or does not come in time, throws std::runtime_error that names
  // its rank and pid; also throws what c10d throws. The object cannot be used after that.
  void Sum(at::Tensor& tensor, double scale, Waiting waiting, Use use);

  // The two halves of it, where all ranks are on one host; see Group. `mine` has a size()-th of the
  // rows of `whole`, and both are contiguous and of the same type, which for the sum is one of
  // Sum()'s. Errors as Sum().
  void ReduceScatter(const at::Tensor& whole, at::Tensor& mine, Use use);
  void AllGather(const at::Tensor& mine, at::Tensor& whole, Use use);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace muster::trainer
