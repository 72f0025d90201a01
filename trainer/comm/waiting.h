// How ranks of one host wait for one another.
#pragma once

namespace muster::trainer {

enum class Waiting {
  // Sleep almost at once: another thread of this process can use the processor.
  kSleep,
  // Look for as long as it would take to fall asleep and be woken up, and only then sleep. For a
  // thread whose process has nothing else to do meanwhile.
  kSpin,
};

}  // namespace muster::trainer
