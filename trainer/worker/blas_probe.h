// What multiplies matrices here, and how fast.
#pragma once

#include <optional>
#include <string>

namespace muster::trainer {

// Floating-point operations in a second, in 1e9, that one thread does in a product of float32
// matrices: the best of a few small products, within about 15 ms. To be called from the thread that
// will train, before SetThreads(): LibTorch's and OpenBLAS's threads are set to one.
double MeasureMatmulGflops();

// The file of the reference BLAS if that is what multiplies matrices in this process; nullopt with
// any other, and where it cannot be told. Decided by what is loaded, as any BLAS is slow on an old
// machine or a busy one.
std::optional<std::string> LoadedReferenceBlas();

// The sentence for somebody whose LibTorch stands on that one, which is about 25 times slower than
// OpenBLAS.
std::string ReferenceBlasWarning(const std::string& file, double gflops);

}  // namespace muster::trainer
