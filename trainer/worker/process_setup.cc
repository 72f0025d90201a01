#include "trainer/worker/process_setup.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Logging.h>

#include "absl/strings/numbers.h"

namespace muster::trainer {

void SetUpProcess() {
  // A training step frees and allocates the same activations and gradients again. By default glibc
  // gives blocks of this size back to the kernel each time and pays for the page faults: keeping
  // them made steps 1.2 to 1.3 times as fast.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);

  std::signal(SIGPIPE, SIG_IGN);  // As Python does; Gloo relies on it.
  std::signal(SIGXFSZ, SIG_IGN);  // A file that may not grow further is an error like a full disk.

#ifdef C10_USE_GLOG
  // glog read its variable when it was loaded, so it is set here rather than in the environment.
  if (std::getenv("GLOG_minloglevel") == nullptr) FLAGS_minloglevel = google::GLOG_FATAL;
#else
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
#endif
}

void SetPrecision(bool tf32, bool deterministic) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(tf32);
  context.setAllowTF32CuDNN(tf32);
  context.setDeterministicCuDNN(deterministic);
  context.setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  // Read when cuBLAS begins: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
  if (deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

void SetThreads(int threads) {
  at::set_num_threads(threads);
  // OpenBLAS has threads of its own. It is looked up by name because any BLAS may stand behind
  // LibTorch.
  using SetNumThreads = void (*)(int);
  if (auto* set =
          reinterpret_cast<SetNumThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set(threads);
  }
}

int DefaultThreads(int local_world_size) {
  int asked = 0;
  const char* omp = std::getenv("OMP_NUM_THREADS");
  if (omp != nullptr && absl::SimpleAtoi(omp, &asked) && asked > 0) return asked;
  cpu_set_t processors;
  const int count =
      sched_getaffinity(0, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : 1;
  return std::max(1, count / std::max(1, local_world_size));
}

}  // namespace muster::trainer
