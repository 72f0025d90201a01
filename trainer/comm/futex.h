// Waiting for a number in memory that processes share.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace muster::trainer {

// Returns once `word` is not `while_it_is` and somebody has called WakeAll(), or `most` is over, or
// for no reason. The futex is shared between processes: no FUTEX_PRIVATE_FLAG.
inline void SleepOn(std::atomic<std::uint32_t>& word, std::uint32_t while_it_is,
                    std::chrono::milliseconds most) {
  const timespec timeout{.tv_sec = most.count() / 1000, .tv_nsec = (most.count() % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, &timeout, nullptr, 0);
}

inline void WakeAll(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace muster::trainer
