// How ranks on one host wait for one another.
#pragma once

namespace muster::trainer {

enum class Waiting {
  // Sleep almost immediately, so that another thread of this process can use the CPU.
  kSleep,
  // Spin for about as long as a sleep and wake-up would take, and only then sleep. For a thread
  // whose process has nothing else to do meanwhile.
  kSpin,
};

}  // namespace muster::trainer
