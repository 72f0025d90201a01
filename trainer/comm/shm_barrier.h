// A barrier for processes that share a segment, which notices members that are gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "trainer/comm/peer_process.h"
#include "trainer/comm/waiting.h"

namespace muster::trainer {

// A barrier in shared memory. Each member has a cell that counts its arrivals. To arrive, a member
// increments its own count and then waits, on a futex, until every other count has caught up. So a
// waiter always knows which members are missing, and when nothing happens for a while it looks up
// their processes. A member that is gone ends the wait at once. One that is stopped, by a signal or
// a debugger, has as long as any other. The member that gives another one up records it in the
// segment, and all others stop waiting with the same error.
//
// Time during which this process itself was stopped does not count, so a job that is stopped and
// continued as a whole carries on.
//
// One thread. Errors are permanent: every later call returns the same one.
class ShmBarrier {
 public:
  struct Options {
    int member = 0;                              // this process's index
    std::vector<int> ranks;                      // each member's rank in the job, for messages
    std::chrono::milliseconds timeout{300'000};  // for each wait, including the first
  };

  // The size in bytes of a barrier for `members` members.
  static std::size_t Bytes(int members);

  // `memory` is Bytes() long, zeroed, aligned to 64 and shared by all members; it must outlive this
  // object. Records this process's identity there. Does not wait.
  ShmBarrier(std::byte* memory, Options options);
  // Calls Leave().
  ~ShmBarrier();
  ShmBarrier(const ShmBarrier&) = delete;
  ShmBarrier& operator=(const ShmBarrier&) = delete;

  // Returns once every member has called it as many times as this one. kUnavailable with a sentence
  // that names the rank and pid when a member is gone or has left, or when the timeout
  // expires. Memory that a member wrote before it arrived is visible to all members after they
  // return.
  absl::Status Arrive(Waiting waiting = Waiting::kSleep);

  // Ends all current and later waits for this member with an error. Call it from the owner's
  // thread.
  void Leave();

 private:
  struct Cell;
  struct Board;

  absl::Status WaitFor(int peer, std::uint32_t arrivals, Waiting waiting);
  // Whether a member's process still exists; kRunning for one that has not joined yet.
  static ProcessState StateOf(const Cell& cell);
  // Looks up all members that have not arrived.
  absl::Status LookAtPeers(std::uint32_t arrivals);
  absl::Status Fail(int peer, std::uint32_t what);
  absl::Status Failure() const;
  Cell& cell(int member) const;

  Board* const board_;
  const Options options_;
  const bool enough_processors_;  // one for each member
  std::uint32_t arrivals_ = 0;
  absl::Status failed_;
};

}  // namespace muster::trainer
