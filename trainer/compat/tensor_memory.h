// The memory of tensors on the CPU, counted by their allocator.
#pragma once

#include <cstdint>

namespace muster::trainer::compat {

// Counts tensors that are made from now on, for the rest of the process; a second call has no
// effect. An atomic addition for each that comes or goes. Call it before other threads make
// tensors.
void CountTensorMemory();

// Bytes of those that are there now; 0 when nothing is counted. Thread-safe.
std::int64_t TensorBytes();

}  // namespace muster::trainer::compat
