// Measures the memory of tensors, for tests.
#pragma once

#include <cstdint>

namespace muster::trainer {

// Starts counting LibTorch's CPU memory, for tensors created from now on.
void CountTensors();

// The bytes of tensors on the CPU now, and the most since CountTensors() or RestartPeak().
std::int64_t BytesOfTensors();
std::int64_t PeakOfTensors();
void RestartPeak();

}  // namespace muster::trainer
