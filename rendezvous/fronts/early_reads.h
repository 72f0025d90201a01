// How many messages may be read before their calls have been looked at.
#pragma once

#include <atomic>

namespace muster::rendezvous {

// Nearly every message is there when its call is. To read it at once, on gRPC's thread, spares the
// call a turn of the loop, and the loop what gRPC does to read. A few at a time are as good as many
// while clients send their messages whole; those of others take their turn (ReadTurns).
//
// On any thread.
class EarlyReads {
 public:
  explicit EarlyReads(int most) : left_(most) {}

  // Whether one more may begin. It has to be ended.
  bool Begin() {
    if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return true;
    End();
    return false;
  }
  void End() { left_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<int> left_;
};

}  // namespace muster::rendezvous
