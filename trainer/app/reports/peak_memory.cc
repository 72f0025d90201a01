#include "trainer/app/reports/peak_memory.h"

#include <fstream>
#include <string>

namespace muster::trainer {

// Not getrusage: its maximum survives exec, and so begins with that of whoever started this one.
std::int64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace muster::trainer
