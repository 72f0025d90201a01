// Process-wide settings.
#pragma once

namespace muster::trainer {

// Call this first in main(), before any tensor is created. It keeps the memory of freed tensors in
// the process, silences LibTorch's log unless GLOG_minloglevel (TORCH_CPP_LOG_LEVEL where LibTorch
// is built without glog) is set (LibTorch also throws what it logs as an error), and ignores
// SIGPIPE and SIGXFSZ, so that writing to a lost peer or beyond the file size limit fails with an
// error.
void SetUpProcess();

// How GPUs compute in float32, and whether they may take operations whose sums have another order
// in each run. Call it before the first operation on a GPU. `tf32`: multiply in TensorFloat-32, in
// which numbers have 10 bits behind the first; LibTorch's own default is that for convolutions and
// not for matrix products. `deterministic`: an operation that has no such form throws c10::Error.
void SetPrecision(bool tf32, bool deterministic);

// Sets how many threads a tensor operation uses, in LibTorch and in OpenBLAS. At least 1.
void SetThreads(int threads);

// The default number of threads for each of the `local_world_size` workers on this node:
// OMP_NUM_THREADS if it is set to a positive number, else an equal share of the processors that
// this process may use. At least 1.
int DefaultThreads(int local_world_size);

}  // namespace muster::trainer
