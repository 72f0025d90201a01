#include "trainer/io/rng_state.h"

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include "absl/strings/str_cat.h"

#include "trainer/worker/one_line.h"

namespace muster::trainer {

at::Tensor CpuRngState() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

absl::Status SetCpuRngState(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  try {
    TORCH_CHECK(state.defined() && state.scalar_type() == at::kByte, "is not a tensor of uint8");
    generator.set_state(state.cpu().contiguous());
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("set the state of the random numbers: ", OneLine(error)));
  }
}

}  // namespace muster::trainer
