// Messages between the ranks of a group that share a host.
#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "trainer/comm/group_facts.h"
#include "trainer/comm/shared_segment.h"

namespace c10d {
class Work;
}

namespace muster::trainer {

// Sends and receives tensors through shared memory (ShmMailbox), recorded and counted as those of
// Gloo are. One thread. All members make and destroy theirs together.
class HostMessages {
 public:
  // The most ranks that there is memory for: each has a ring for each other.
  static constexpr int kMostRanks = 16;

  // The members of `facts` share a host. `gather` asks them. Throws std::runtime_error with one
  // sentence, on every rank, when one of them cannot get the memory.
  HostMessages(const GroupFacts& facts, std::shared_ptr<GroupMeter> meter,
               const GatherText& gather);
  ~HostMessages();
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  // Whether a message of `bytes` goes this way: one that is larger than what can be on its way at
  // once would move only while both sides wait for it.
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
