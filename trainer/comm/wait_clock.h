// How long a thread has waited for other ranks.
#pragma once

#include <chrono>

namespace muster::trainer {

// From now on waiting is counted, in the whole process: before, nobody wants to know, and it costs
// nothing. Any thread.
void CountWaits();
bool WaitsAreCounted();

// While one exists its thread waits: it is in an operation that needs other ranks, of which the
// part that is work cannot be told from the part that is patience. One within another counts once.
// Ends on the thread on which it began. It costs two readings of the clock, 50 ns.
class WaitScope {
 public:
  WaitScope();
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  const bool counts_;
};

// How long this thread has waited in scopes that have ended. Work that another thread waits for
// meanwhile, such as averaging gradients while more of them are computed, is not in it.
std::chrono::nanoseconds WaitedByThread();

}  // namespace muster::trainer
