#include "trainer/runtime/process_setup.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Logging.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

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
  // Read when cuBLAS is initialized: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
  if (deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

void SetThreads(int threads) {
  at::set_num_threads(threads);
  // OpenBLAS has its own threads. Looked up by name because LibTorch may use any BLAS.
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

namespace {

// The reference BLAS does 5, OpenBLAS 120 or more.
constexpr double kFastGflops = 40;

// A function exported by each fast library. Debian's OpenBLAS, BLIS and ATLAS each have their own
// libblas.so.3, which contains or forwards to it.
constexpr const char* kOfFastLibraries[] = {"openblas_get_config", "bli_info_get_version_str",
                                            "ATL_buildinfo", "flexiblas_get_version",
                                            "mkl_get_version"};

}  // namespace

double MeasureMatmulGflops() {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kSide = 256;
  constexpr double kOperations = 2.0 * kSide * kSide * kSide;
  // The reference BLAS needs 7 ms for one product, OpenBLAS 0.3 ms.
  constexpr std::chrono::milliseconds kBudget(8);
  SetThreads(1);
  const at::Tensor a = at::ones({kSide, kSide});
  at::Tensor product = at::empty({kSide, kSide});
  // The first product of a process includes initialization; a small one suffices.
  at::mm(a.narrow(0, 0, 8), a);
  double best = 0;
  // Several attempts, as another process may interrupt one. A single fast one is proof.
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    at::mm_out(product, a, a);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::max(best, kOperations / 1e9 / std::max(seconds.count(), 1e-9));
  } while (best < kFastGflops && Clock::now() - start < kBudget);
  return best;
}

std::optional<std::string> LoadedReferenceBlas() {
  // Resolved like LibTorch's call: in the first library that has it.
  void* const product = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info provider = {};
  if (product == nullptr || dladdr(product, &provider) == 0) return std::nullopt;
  std::error_code error;
  // The path is a link of /etc/alternatives.
  const std::filesystem::path file = std::filesystem::canonical(provider.dli_fname, error);
  if (error || !file.filename().string().starts_with("libblas.so")) return std::nullopt;
  // Looked up only there and in its dependencies, as OpenBLAS may be loaded just for LAPACK.
  void* const library = dlopen(provider.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  const bool is_fast =
      std::any_of(std::begin(kOfFastLibraries), std::end(kOfFastLibraries),
                  [&](const char* function) { return dlsym(library, function) != nullptr; });
  dlclose(library);
  if (is_fast) return std::nullopt;
  return file.string();
}

std::string ReferenceBlasWarning(const std::string& file, double gflops) {
  return absl::StrFormat(
      "matrices are multiplied by the reference BLAS (%s), at %.1f GFLOP/s; install "
      "libopenblas0-pthread, which is about 25 times as fast",
      file, gflops);
}

}  // namespace muster::trainer
