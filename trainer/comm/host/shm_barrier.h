// A barrier for processes that share a segment; detects members that are gone.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#include "absl/status/status.h"

#include "trainer/comm/host/transport.h"

namespace muster::trainer {

// Whether another process on this host still exists and is running.

// Identifies a process, even if its pid is reused later.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // in the kernel's clock ticks, from /proc/PID/stat
};

enum class ProcessState {
  kRunning,  // or asleep: can continue by itself
  kStopped,  // by SIGSTOP or a debugger: someone has to continue it
  kGone,     // ended, even if not reaped yet, or its pid now belongs to another process
};

// The identity of the calling process.
ProcessIdentity ThisProcess();

// Looks the process up in /proc; both processes must be in the same pid namespace. If /proc cannot
// be read, a process that exists counts as running.
ProcessState LookAt(const ProcessIdentity& process);

// A barrier in shared memory. Each member has a cell that counts its arrivals. To arrive, a member
// increments its own count and then waits, on a futex, until every other count has caught up. So a
// waiter always knows which members are missing, and if nothing happens for a while it looks up
// their processes. A member that is gone ends the wait at once. One that is stopped, by a signal or
// a debugger, has the same timeout as any other. A member that gives up on another one records that
// in the segment, and all others stop waiting with the same error.
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
  // that names the rank and pid if a member is gone or has left, or if the timeout expires. Memory
  // that a member wrote before it arrived is visible to all members after they return.
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

// Waiting for a change of a number in shared memory.

// Returns once `word` is not `while_it_is` and WakeAll() has been called, or after `most`, or
// spuriously. The futex is shared between processes: no FUTEX_PRIVATE_FLAG.
inline void SleepOn(std::atomic<std::uint32_t>& word, std::uint32_t while_it_is,
                    std::chrono::milliseconds most) {
  const timespec timeout{.tv_sec = most.count() / 1000, .tv_nsec = (most.count() % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, &timeout, nullptr, 0);
}

inline void WakeAll(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace muster::trainer
