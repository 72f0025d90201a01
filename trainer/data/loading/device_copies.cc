#include "trainer/data/loading/device_copies.h"

#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace muster::trainer {

using c10::impl::VirtualGuardImpl;

DeviceCopies::DeviceCopies(const at::Device& device) : device_(device) {
  if (!device.is_cpu()) stream_ = VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

void DeviceCopies::EnterThread() const {
  if (stream_) VirtualGuardImpl(device_.type()).setDevice(device_);
}

DeviceCopies::Copy DeviceCopies::Begin(Batch batch) const {
  if (!stream_) return {std::move(batch), std::nullopt};
  const c10::StreamGuard guard(*stream_);
  Copy copy = {{Fetch(batch.inputs), Fetch(batch.targets)}, c10::Event(device_.type())};
  copy.arrival->record(*stream_);
  return copy;
}

Batch DeviceCopies::Receive(Copy copy) const {
  if (!copy.arrival) return std::move(copy.batch);
  const VirtualGuardImpl guard(device_.type());
  const c10::Stream current = guard.getStream(device_);
  copy.arrival->block(current);
  for (const at::Tensor& tensor : {copy.batch.inputs, copy.batch.targets}) {
    // It was allocated for the stream that copied it, and must not be given to that one's next copy
    // before this one is done with it.
    guard.recordDataPtrOnStream(tensor.storage().data_ptr(), current);
  }
  return std::move(copy.batch);
}

// From memory that is not pinned a copy would make the thread wait.
at::Tensor DeviceCopies::Fetch(const at::Tensor& tensor) const {
  const at::Tensor source = device_.is_cuda() ? tensor.pin_memory() : tensor;
  return source.to(device_, tensor.scalar_type(), /*non_blocking=*/true);
}

}  // namespace muster::trainer
