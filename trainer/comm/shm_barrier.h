// Where the processes that share a segment wait for one another, and notice who does not come.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "trainer/comm/waiting.h"

namespace muster::trainer {

// A barrier in shared memory. Each member has a cell that counts its arrivals; a member arrives by
// counting up its own and then waits, on a futex, for each other cell to get there. So a waiter
// knows at any time whom it waits for, and when nothing has happened for a while it looks that
// process up: one that is gone ends the wait at once, one that is stopped after a grace. Whoever
// finds such a member writes that down in the segment, and all others stop waiting with the same
// sentence.
//
// One thread. An error lasts: every later call returns it again.
class ShmBarrier {
 public:
  struct Options {
    int member = 0;                              // this process's place
    std::vector<int> ranks;                      // the rank of each member in the job, for messages
    std::chrono::milliseconds timeout{300'000};  // of one wait, the first included
    std::chrono::milliseconds stopped_grace{100};
  };

  // Bytes that a barrier of `members` takes.
  static std::size_t Bytes(int members);

  // `memory` holds Bytes() zeros that all members share, aligned to 64; it must outlive this
  // object. Writes down who this process is; waits for nobody.
  ShmBarrier(std::byte* memory, Options options);
  // Leaves: whoever waits for this member from now on gets an error.
  ~ShmBarrier();
  ShmBarrier(const ShmBarrier&) = delete;
  ShmBarrier& operator=(const ShmBarrier&) = delete;

  // Returns once every member has called it as often. kUnavailable with a sentence that names the
  // rank and the pid when one of them is gone, is stopped or has left, and when the timeout passes.
  // What a member wrote before it arrived is seen by all after they return.
  absl::Status Arrive(Waiting waiting = Waiting::kSleep);

  // Ends every wait for this member, now and later, with an error. From the owner's thread.
  void Leave();

 private:
  struct Cell;
  struct Board;

  absl::Status WaitFor(int peer, std::uint32_t arrivals, Waiting waiting);
  // Looks up everybody who has not arrived.
  absl::Status LookAtPeers(std::uint32_t arrivals, std::vector<std::chrono::milliseconds>& stopped);
  absl::Status Fail(int peer, std::uint32_t what);
  absl::Status Failure() const;
  Cell& cell(int member) const;

  Board* const board_;
  const Options options_;
  const bool enough_processors_;  // for all members at once
  std::uint32_t arrivals_ = 0;
  absl::Status failed_;
};

}  // namespace muster::trainer
