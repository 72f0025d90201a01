// Sums tensors over the ranks of a group whose members share hosts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "trainer/comm/group_facts.h"
#include "trainer/comm/host/shm_segment.h"
#include "trainer/comm/host/transport.h"

namespace c10d {
class Work;
}

namespace muster::trainer {

// Sums through shared memory among the ranks of a host; if there are several hosts, their leaders
// (see HostLayout) then sum over Gloo and pass the result to the other ranks through shared memory.
// Every rank gets the same bits.
//
// All members of the group must create, call and destroy their AllReducers in the same order, each
// from one thread at a time. Its operations may run concurrently with those of c10d's group.
class AllReducer {
 public:
  // The minimum shared memory with `members` ranks on a host.
  static std::size_t LeastBytes(std::size_t members);

  // `largest_bytes` is the expected size of the largest tensor, and determines the size of the
  // segment (larger tensors are summed in pieces). `gather` exchanges text between the members; the
  // leaders meet under `name`, which must be new to the group. Throws std::runtime_error with one
  // sentence, on every rank, if one of them cannot get the memory, and what c10d throws.
  AllReducer(const GroupFacts& facts, std::shared_ptr<GroupMeter> meter, const GatherText& gather,
             const std::string& name, std::size_t largest_bytes, const ShmOptions& options);
  ~AllReducer();
  AllReducer(const AllReducer&) = delete;
  AllReducer& operator=(const AllReducer&) = delete;

  // Replaces `tensor` (contiguous, on the CPU; float, double, half or bfloat16) with `scale` times
  // its sum over the members; half and bfloat16 are summed in float. Blocks. Counts under `use` the
  // bytes that this rank has read from other ranks' memory; unknown with several hosts. If a peer
  // on this host is gone or late, throws std::runtime_error with its rank and pid; also throws what
  // c10d throws. After that the object must not be used.
  void Sum(at::Tensor& tensor, double scale, Waiting waiting, Use use);

  // Its two halves, if all ranks are on one host; see Group. `mine` has a size()-th of the rows of
  // `whole`, and both are contiguous and of the same type, which for the sum is one of Sum()'s.
  // Errors as Sum().
  void ReduceScatter(const at::Tensor& whole, at::Tensor& mine, Use use);
  void AllGather(const at::Tensor& mine, at::Tensor& whole, Use use);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

// Messages between ranks of a group on the same host.

// Sends and receives tensors through shared memory (ShmMailbox), recorded and counted like Gloo's.
// One thread. All members create and destroy theirs together.
class HostMessages {
 public:
  // A memory limit: each rank has a ring for each other one.
  static constexpr int kMostRanks = 16;

  // The members of `facts` are on one host. `gather` exchanges text. Throws std::runtime_error with
  // one sentence, on every rank, if one of them cannot get the memory.
  HostMessages(const GroupFacts& facts, std::shared_ptr<GroupMeter> meter,
               const GatherText& gather);
  ~HostMessages();
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  // Whether a message of `bytes` goes this way: one larger than what fits in flight would advance
  // only while both sides wait for it.
  bool Carries(std::size_t bytes) const { return bytes <= largest_; }

  // See Group. `tensor` is contiguous and on the CPU.
  c10::intrusive_ptr<c10d::Work> Send(const at::Tensor& tensor, int to, int tag, Use use);
  c10::intrusive_ptr<c10d::Work> Receive(const at::Tensor& tensor, int from, int tag, Use use);

 private:
  struct Parts;
  const std::shared_ptr<Parts> parts_;
  std::size_t largest_ = 0;
};

}  // namespace muster::trainer
