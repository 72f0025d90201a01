// Messages between the processes of one host, through shared memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"

#include "trainer/comm/host/shm_segment.h"

namespace muster::trainer {

// A ring of bytes from each member to each other one. A message is written into it as far as there
// is room, and the rest during later calls of this member; the receiver copies it out, into the
// memory that waits for a message with its tag, or into a buffer until there is some. So messages
// need no thread and no lock, and one that fits costs two copies and at most one wake-up.
//
// One thread. If a member is gone or late, calls that wait for it return kUnavailable with a
// sentence that names its rank and pid, and so does every later call.
class ShmMailbox {
 public:
  struct Options {
    int member = 0;                              // this process's index
    std::vector<int> ranks;                      // each member's rank in the job, for messages
    std::chrono::milliseconds timeout{300'000};  // for each wait
  };
  // A message in progress.
  using Ticket = std::uint64_t;

  // The size of a segment for `members` members with rings of `ring_bytes`, a multiple of 64.
  static std::size_t SegmentBytes(int members, std::size_t ring_bytes);

  // Takes ownership of `segment`, zeroed, whose size must be SegmentBytes() of some ring.
  ShmMailbox(ShmSegment segment, Options options);
  ~ShmMailbox();
  ShmMailbox(const ShmMailbox&) = delete;
  ShmMailbox& operator=(const ShmMailbox&) = delete;

  // Starts sending `bytes` at `data` to member `to`, or receiving as many from member `from`. Do
  // not touch the memory until Wait() has returned. Messages between two members with the same tag
  // arrive in the order they were sent.
  Ticket Send(int to, int tag, const std::byte* data, std::size_t bytes);
  Ticket Receive(int from, int tag, std::byte* data, std::size_t bytes);

  // Whether the message has been completely written, or received. Advances it as far as possible.
  bool Done(Ticket ticket);
  // Returns when it has. kInvalidArgument if the message received for it had another size.
  absl::Status Wait(Ticket ticket);

 private:
  struct Cell;
  struct Ring;
  struct Peer;

  Cell& CellOf(int member) const;
  Ring& RingFrom(int from, int to) const;
  // Advances all messages as far as possible; returns whether anything moved.
  bool Progress();
  bool Push(int to, Peer& peer);
  bool Pull(int from, Peer& peer);
  void Deliver(int from, Peer& peer, int tag, std::vector<std::byte> message);
  void Announce(int member);
  // Checks the members that are being waited for: OK while their messages may still come.
  absl::Status LookAtPeers();
  absl::Status Fail(int member, const std::string& what);

  const Options options_;
  const ShmSegment segment_;
  const std::size_t ring_bytes_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by member; null for this one
  std::unordered_set<Ticket> open_;           // messages that are not done
  Ticket next_ = 1;
  absl::Status failed_;
};

}  // namespace muster::trainer
