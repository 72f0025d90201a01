// How fast matrices are multiplied here.
#pragma once

#include <optional>
#include <string>

namespace muster::trainer {

// Floating-point operations in a second, in 1e9, that one thread does in a product of float32
// matrices: the best of a few small products, within about 15 ms. To be called from the thread that
// will train, before SetThreads(): LibTorch's and OpenBLAS's threads are set to one.
double MeasureMatmulGflops();

// The sentence for somebody whose LibTorch stands on the reference BLAS, which is about 25 times
// slower than OpenBLAS; nullopt when `gflops` is above what it ever reaches.
std::optional<std::string> SlowBlasWarning(double gflops);

}  // namespace muster::trainer
