// Process-wide settings.
#pragma once

#include <optional>
#include <string>

namespace muster::trainer {

// Call this first in main(), before any tensor is created. It keeps the memory of freed tensors in
// the process, silences LibTorch's log unless GLOG_minloglevel (TORCH_CPP_LOG_LEVEL where LibTorch
// is built without glog) is set (LibTorch also throws what it logs as an error), and ignores
// SIGPIPE and SIGXFSZ, so that writing to a lost peer or beyond the file size limit returns an
// error.
void SetUpProcess();

// How GPUs compute in float32, and whether they may use operations whose order of summation varies
// between runs. Call it before the first operation on a GPU. `tf32`: multiply in TensorFloat-32,
// whose numbers have a 10-bit mantissa; LibTorch's default does that for convolutions but not for
// matrix products. `deterministic`: an operation without a deterministic form throws c10::Error.
void SetPrecision(bool tf32, bool deterministic);

// Sets how many threads a tensor operation uses, in LibTorch and in OpenBLAS. At least 1.
void SetThreads(int threads);

// The default number of threads for each of the `local_world_size` workers on this node:
// OMP_NUM_THREADS if it is set to a positive number, else an equal share of the processors that
// this process may use. At least 1.
int DefaultThreads(int local_world_size);

// Which BLAS is loaded, and its speed.

// Measures GFLOP/s of one thread multiplying float32 matrices: the best of a few small products,
// within about 15 ms. Call it on the training thread, before SetThreads(), because it sets LibTorch
// and OpenBLAS to one thread.
double MeasureMatmulGflops();

// The library file if this process uses the reference BLAS; nullopt if it uses another one, or that
// cannot be determined. Checks the loaded library and not the speed, because any BLAS is slow on an
// old or busy machine.
std::optional<std::string> LoadedReferenceBlas();

// A warning that the reference BLAS `file` is in use at `gflops` GFLOP/s, and that OpenBLAS is
// about 25 times as fast.
std::string ReferenceBlasWarning(const std::string& file, double gflops);

}  // namespace muster::trainer
