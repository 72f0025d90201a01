// Collective operations between the processes of one host, through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"

#include "trainer/comm/host/shm_arithmetic.h"
#include "trainer/comm/host/shm_barrier.h"
#include "trainer/comm/host/shm_segment.h"
#include "trainer/comm/host/transport.h"

namespace muster::trainer {

// Each member has two windows of equal size in the segment. A tensor passes through them piece by
// piece: the members copy what others need into their windows, wait, sum one share each
// (reduce-scatter), write the sums to their windows, wait, and read the others' shares
// (all-gather). Pieces alternate between the two windows, so that no member has to wait before it
// fills the next one: a member that arrives at the first wait of a piece has finished reading the
// previous piece, so after that wait the previous piece's window can be filled again.
//
// With two members, each sums the whole piece instead of a share. That moves the same number of
// bytes, with one wait instead of two.
//
// All members must call the same operations with the same sizes in the same order, from one thread
// each. An operation returns kUnavailable with a sentence that names the rank if a member is gone
// or late (see ShmBarrier). The data is then undefined, and the object must not be used.
class ShmAllReduce {
 public:
  // The size of a cache line. Shares are aligned to it, so that no two members write to the same
  // line.
  static constexpr std::size_t kLine = 64;

  // The size of a segment for `members` members with windows of `window_bytes`, a multiple of
  // kLine.
  static std::size_t SegmentBytes(int members, std::size_t window_bytes);

  // Takes ownership of `segment`, whose size must be SegmentBytes() of some window. There are as
  // many members as options.ranks.
  ShmAllReduce(ShmSegment segment, ShmBarrier::Options options);

  // Replaces `data`, `count` elements, with `scale` times the sum over the members. All get the
  // same bits, because every sum is formed in the order of the members.
  absl::Status AllReduce(ElementType type, std::byte* data, std::size_t count, double scale,
                         Waiting waiting = Waiting::kSleep);
  // The same, but only member 0 gets the result; the others' `data` is undefined afterwards.
  absl::Status Reduce(ElementType type, std::byte* data, std::size_t count, double scale);
  // The first half of an all-reduce: `whole` is `count` elements, one part of equal size per
  // member. Puts the sum over the members of this one's part into `mine`, in the order of the
  // members. `count` is a multiple of the number of members; `mine` must not overlap.
  absl::Status ReduceScatter(ElementType type, const std::byte* whole, std::size_t count,
                             std::byte* mine);
  // The second half: concatenates the members' `mine`, `bytes` long each, in `whole`, which may
  // already contain `mine` in its place.
  absl::Status AllGather(const std::byte* mine, std::size_t bytes, std::byte* whole);
  // Copies member 0's `data`, `bytes` long, to all members.
  absl::Status Broadcast(std::byte* data, std::size_t bytes);
  // Makes the others' operations fail, as destroying this object does. Call it from the owner's
  // thread.
  void Leave() { barrier_.Leave(); }

  // Bytes read from other members' windows so far.
  std::int64_t moved_bytes() const { return moved_bytes_; }

 private:
  enum class To { kAll, kFirst };
  absl::Status AddUpBoth(ElementType type, std::byte* data, std::size_t count, double scale,
                         Waiting waiting);
  absl::Status ReduceTo(To to, ElementType type, std::byte* data, std::size_t count, double scale,
                        Waiting waiting);
  std::byte* Window(int member) const;  // the one for the current piece

  const int member_;
  const int members_;
  const std::size_t window_bytes_;
  const ShmSegment segment_;
  ShmBarrier barrier_;
  int turn_ = 0;
  std::int64_t moved_bytes_ = 0;
};

}  // namespace muster::trainer
