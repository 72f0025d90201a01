// How much memory tensors take, for tests.
#pragma once

#include <cstdint>

namespace muster::trainer {

// From now on, LibTorch's CPU memory is counted. Tensors that were made before are not.
void CountTensors();

// The bytes of tensors on the CPU now, and the most since CountTensors() or RestartPeak().
std::int64_t BytesOfTensors();
std::int64_t PeakOfTensors();
void RestartPeak();

}  // namespace muster::trainer
