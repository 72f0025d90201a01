#include "test/trainer/diary_device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace muster::trainer {
namespace {

constexpr auto kType = at::DeviceType::PrivateUse1;

// What the device was asked for, by all threads.
class Diary {
 public:
  void Write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> Read() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};
Diary g_diary;

// Streams 0, the default, and 7, that of the pool. Each thread has a current one, and a device.
class GuardOfDiary final : public c10::impl::DeviceGuardImplInterface {
 public:
  at::DeviceType type() const override { return kType; }
  at::Device exchangeDevice(at::Device device) const override {
    return {kType, std::exchange(device_, device.index())};
  }
  at::Device getDevice() const override { return {kType, device_}; }
  void setDevice(at::Device device) const override {
    device_ = device.index();
    g_diary.Write("device " + std::to_string(device_));
  }
  void uncheckedSetDevice(at::Device device) const noexcept override { device_ = device.index(); }
  c10::Stream getStream(at::Device device) const noexcept override {
    return Named(device, stream_);
  }
  c10::Stream getStreamFromGlobalPool(at::Device device, bool /*high*/) const override {
    return Named(device, 7);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return Named(stream.device(), std::exchange(stream_, stream.id()));
  }
  at::DeviceIndex deviceCount() const noexcept override { return 2; }

  void record(void** event, const c10::Stream& stream, at::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new int();
    g_diary.Write("mark stream " + std::to_string(stream.id()));
  }
  void block(void* event, const c10::Stream& stream) const override {
    EXPECT_NE(event, nullptr);
    g_diary.Write("stream " + std::to_string(stream.id()) + " waits for the mark");
  }
  void destroyEvent(void* event, at::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<int*>(event);
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    g_diary.Write("wait for stream " + std::to_string(stream.id()));
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream& stream) const override {
    g_diary.Write("keep for stream " + std::to_string(stream.id()));
  }

  static c10::StreamId stream() { return stream_; }

 private:
  static c10::Stream Named(at::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, device, id);
  }

  static thread_local at::DeviceIndex device_;
  static thread_local c10::StreamId stream_;
};
thread_local at::DeviceIndex GuardOfDiary::device_ = 0;
thread_local c10::StreamId GuardOfDiary::stream_ = 0;

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardOfDiary);

struct MemoryOfDiary final : c10::Allocator {
  at::DataPtr allocate(std::size_t bytes) const override {
    at::DataPtr memory = c10::GetCPUAllocator()->allocate(bytes);
    memory.unsafe_set_device(DiaryDevice());
    return memory;
  }
};

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                        c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                        c10::optional<at::Device>, c10::optional<bool>) {
  static MemoryOfDiary memory;
  return at::Tensor(at::detail::empty_strided_generic(
      size, stride, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      dtype.value_or(at::kFloat)));
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  g_diary.Write("copy on stream " + std::to_string(GuardOfDiary::stream()) +
                (non_blocking ? "" : ", waiting"));
  std::memcpy(to.data_ptr(), from.data_ptr(), from.nbytes());
  return to;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty_strided", EmptyStrided);
  library.impl("_copy_from", CopyFrom);
}

}  // namespace

at::Device DiaryDevice() {
  return {kType, 1};
}

std::vector<std::string> ReadDiary() {
  return g_diary.Read();
}

}  // namespace muster::trainer
