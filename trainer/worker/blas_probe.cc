#include "trainer/worker/blas_probe.h"

#include <dlfcn.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/str_format.h"

#include "trainer/worker/process_setup.h"

namespace muster::trainer {
namespace {

// The reference BLAS does 5, OpenBLAS 120 or more.
constexpr double kFastGflops = 40;

// One function of each library that is fast. Debian's OpenBLAS, BLIS and ATLAS each have a
// libblas.so.3, too, which passes calls on to it or holds it.
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
  // The first product of a process pays for what is set up on demand; a small one will do.
  at::mm(a.narrow(0, 0, 8), a);
  double best = 0;
  // A product that another process interrupted says nothing, hence several. A fast one is proof.
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
  // Found as LibTorch's call was: in the first library that has it.
  void* const product = dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info provider = {};
  if (product == nullptr || dladdr(product, &provider) == 0) return std::nullopt;
  std::error_code error;
  // The way to it is a link of /etc/alternatives.
  const std::filesystem::path file = std::filesystem::canonical(provider.dli_fname, error);
  if (error || !file.filename().string().starts_with("libblas.so")) return std::nullopt;
  // Looked for there and in what it needs, as OpenBLAS may be loaded for the sake of LAPACK alone.
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
