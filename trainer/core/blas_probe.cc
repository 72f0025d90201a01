#include "trainer/core/blas_probe.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"

#include "trainer/core/process_setup.h"

namespace muster::trainer {
namespace {

// The reference BLAS does 5, OpenBLAS 120 or more; old machines and busy ones stay above this with
// OpenBLAS.
constexpr double kSlowGflops = 20;

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
  } while (best < 2 * kSlowGflops && Clock::now() - start < kBudget);
  return best;
}

std::optional<std::string> SlowBlasWarning(double gflops) {
  if (gflops >= kSlowGflops) return std::nullopt;
  return absl::StrFormat(
      "matrices are multiplied at %.1f GFLOP/s, which is what the reference BLAS does; install "
      "libopenblas0-pthread, which is about 25 times as fast",
      gflops);
}

}  // namespace muster::trainer
