#include "test/trainer/models/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace muster::trainer {
namespace {

constexpr std::size_t kLine = 64;  // before each block: its size

std::atomic<std::int64_t> in_use = 0;
std::atomic<std::int64_t> peak = 0;

class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) const override {
    auto* block = static_cast<std::size_t*>(
        std::aligned_alloc(kLine, (bytes + 2 * kLine - 1) / kLine * kLine));
    *block = bytes;
    const std::int64_t now = in_use += static_cast<std::int64_t>(bytes);
    if (now > peak) peak = now;
    void* data = reinterpret_cast<char*>(block) + kLine;
    return {data, data, Free, at::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return Free; }

 private:
  static void Free(void* data) {
    if (data == nullptr) return;
    auto* block = reinterpret_cast<std::size_t*>(static_cast<char*>(data) - kLine);
    in_use -= static_cast<std::int64_t>(*block);
    std::free(block);
  }
};

}  // namespace

void CountTensors() {
  static CountingAllocator counting;
  c10::SetAllocator(at::kCPU, &counting, /*priority=*/1);
}

std::int64_t BytesOfTensors() {
  return in_use;
}

std::int64_t PeakOfTensors() {
  return peak;
}

void RestartPeak() {
  peak = in_use.load();
}

}  // namespace muster::trainer
