// Brings batches from the processor's memory to a GPU while that is at work.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "trainer/data/dataset.h"

namespace muster::trainer {

// Copies on a stream of its own, so that a GPU computes one batch while it receives the next.
// Nobody waits for a copy but the stream that needs it. On the CPU batches are handed through.
class DeviceCopies {
 public:
  // A batch on its way.
  struct Copy {
    Batch batch;
    std::optional<c10::Event> arrival;  // nullopt: it is there
  };

  explicit DeviceCopies(const at::Device& device);

  // Call it once in each thread that calls Begin() but not Receive(), before: else CUDA would
  // choose the first GPU for it.
  void EnterThread() const;
  // Copies `batch` into memory that a GPU can read by itself, and has it fetched. Returns at once.
  // Any thread. Throws c10::Error, for example when there is not enough memory.
  Copy Begin(Batch batch) const;
  // The batch, for the current stream of the calling thread, which waits for it; the thread does
  // not.
  Batch Receive(Copy copy) const;

 private:
  at::Tensor Fetch(const at::Tensor& tensor) const;

  const at::Device device_;
  std::optional<c10::Stream> stream_;  // nullopt on the CPU
};

}  // namespace muster::trainer
