// The most memory that this process has had.
#pragma once

#include <cstdint>

namespace muster::trainer {

// Bytes of this process that were in memory at once, since it began (VmHWM); 0 when /proc does not
// say.
std::int64_t PeakResidentBytes();

}  // namespace muster::trainer
