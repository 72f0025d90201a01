// Collective operations of the processes of one host through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"

#include "trainer/comm/shm_arithmetic.h"
#include "trainer/comm/shm_barrier.h"
#include "trainer/comm/shm_segment.h"
#include "trainer/comm/waiting.h"

namespace muster::trainer {

// Each member has two equal windows in the segment. A tensor goes through them piece by piece: the
// members put what others need into their windows, wait, add up a share each (reduce-scatter), put
// the sums there, wait, and take the shares of others (all-gather). Pieces use the two windows in
// turn, so that nobody has to wait before it fills the next one: whoever comes to the first wait of
// piece k + 1 has left piece k - 1.
//
// Two members share nothing out: each adds up all of it, which moves as many bytes between them and
// takes one wait instead of two.
//
// The members call the same operations with the same sizes in the same order, from one thread each.
// An operation returns kUnavailable with a sentence that names the rank when a member is gone or
// stopped (see ShmBarrier); the data is then lost, and so is the use of this object.
class ShmAllReduce {
 public:
  // Bytes of a segment for `members` with windows of `window_bytes`, a multiple of 64.
  static std::size_t SegmentBytes(int members, std::size_t window_bytes);

  // `segment` has SegmentBytes(), and is given up to this object. The number of members is that of
  // options.ranks.
  ShmAllReduce(ShmSegment segment, std::size_t window_bytes, ShmBarrier::Options options);

  // Replaces `data`, `count` elements, by `scale` times the sum over the members. All get the same
  // bits: each element is added up by one member, in the order of the members.
  absl::Status AllReduce(ElementType type, std::byte* data, std::size_t count, double scale,
                         Waiting waiting = Waiting::kSleep);
  // The same for member 0 alone; what the others' `data` holds afterwards is not said.
  absl::Status Reduce(ElementType type, std::byte* data, std::size_t count, double scale);
  // Replaces everybody's `data`, `bytes` long, by member 0's.
  absl::Status Broadcast(std::byte* data, std::size_t bytes);
  // Makes the others' operations fail, as they do when this object is destroyed. From its thread.
  void Leave() { barrier_.Leave(); }

  // Bytes taken from other members' windows so far.
  std::int64_t moved_bytes() const { return moved_bytes_; }

 private:
  enum class To { kAll, kFirst };
  absl::Status AddUpBoth(ElementType type, std::byte* data, std::size_t count, double scale,
                         Waiting waiting);
  absl::Status ReduceTo(To to, ElementType type, std::byte* data, std::size_t count, double scale,
                        Waiting waiting);
  std::byte* Window(int member) const;  // the one whose turn it is

  const int member_;
  const int members_;
  const std::size_t window_bytes_;
  const ShmSegment segment_;
  ShmBarrier barrier_;
  int turn_ = 0;
  std::int64_t moved_bytes_ = 0;
};

}  // namespace muster::trainer
