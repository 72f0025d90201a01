// Which BLAS multiplies matrices here, and how fast.
#pragma once

#include <optional>
#include <string>

namespace muster::trainer {

// Measures GFLOP/s of one thread multiplying float32 matrices: the best of a few small products,
// within about 15 ms. Call it on the thread that will train, before SetThreads(), because it sets
// LibTorch and OpenBLAS to one thread.
double MeasureMatmulGflops();

// The library file if this process uses the reference BLAS; nullopt if it uses another one, or if
// that cannot be determined. Judged by the library that is loaded and not by speed, because any
// BLAS is slow on an old or busy machine.
std::optional<std::string> LoadedReferenceBlas();

// A warning that the reference BLAS `file` is in use at `gflops` GFLOP/s, and that OpenBLAS is
// about 25 times as fast.
std::string ReferenceBlasWarning(const std::string& file, double gflops);

}  // namespace muster::trainer
