#include "trainer/compat/tensor_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "trainer/compat/torch_version.h"

namespace muster::trainer::compat {
namespace {

std::atomic<std::int64_t> bytes_there = 0;

std::int64_t SizeOf(void* memory) {
  return static_cast<std::int64_t>(malloc_usable_size(memory));
}

// allocate() is const before LibTorch 2.3.
#if MUSTER_TORCH_VERSION < 203
#define MUSTER_CONST_ALLOCATE const
#else
#define MUSTER_CONST_ALLOCATE
#endif

// LibTorch's own, which takes memory from malloc, with a count.
class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) MUSTER_CONST_ALLOCATE override {
    void* const memory = c10::GetDefaultCPUAllocator()->raw_allocate(size);
    bytes_there.fetch_add(SizeOf(memory), std::memory_order_relaxed);
    return {memory, memory, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  // Overrides what has been part of the interface since 2.3.
  void copy_data(void* to, const void* from, std::size_t size) const {
    std::memcpy(to, from, size);
  }

 private:
  static void Free(void* memory) {
    bytes_there.fetch_sub(SizeOf(memory), std::memory_order_relaxed);
    c10::GetDefaultCPUAllocator()->raw_deallocate(memory);
  }
};

}  // namespace

void CountTensorMemory() {
  static CountingAllocator* const allocator = [] {
    auto* const made = new CountingAllocator;
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  (void)allocator;
}

std::int64_t TensorBytes() {
  return bytes_there.load(std::memory_order_relaxed);
}

}  // namespace muster::trainer::compat
