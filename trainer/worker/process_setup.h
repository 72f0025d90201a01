// What is set once for the whole process before any tensor is made.
#pragma once

namespace muster::trainer {

// To be called first in main(), before the first tensor is made. Keeps the memory of freed tensors
// in the process, silences LibTorch's log (what it logs as an error it also throws) unless
// GLOG_minloglevel is set, and makes errors of what would be signals: a write
// to a peer that is gone, or beyond the size that files may have.
void SetUpProcess();

// Sets how many threads one tensor operation uses, in LibTorch and in OpenBLAS. At least 1.
void SetThreads(int threads);

// The threads each of `local_world_size` workers on this node takes by default: OMP_NUM_THREADS
// when it is set to a positive number, else an equal share of the processors this process may run
// on. At least 1.
int DefaultThreads(int local_world_size);

}  // namespace muster::trainer
