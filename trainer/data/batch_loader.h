// Prepares the batches of an epoch in the background, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/samples/sample_order.h"

namespace muster::trainer {

struct BatchLoaderOptions {
  std::int64_t epoch = 0;
  bool train = true;
  // Threads that gather batches; 0: Next() gathers them itself.
  int threads = 1;
  // The most batches that may be ready or in preparation at once; at least 1. Limits memory use.
  int queue = 4;
  // Where Next() returns batches; the calling thread's current device, if it is a GPU.
  at::Device device = at::kCPU;
};

struct LoadedBatch {
  Batch data;  // on the loader's device
  // The plan for `data`, including the indices.
  RankBatch plan;
};

// Hands out one rank's batches of one epoch. Each batch has a ticket, its position in the epoch.
// Threads draw tickets in order and store each batch under its ticket, so the order does not depend
// on the number of threads. Threads block until there is room, and Next() until its batch is ready;
// nothing polls. A batch is planned when its ticket is drawn, so memory does not depend on the
// length of the epoch. To resume in the middle of an epoch, pass the plan of the remaining steps.
//
// Call Next() from one thread only. The destructor waits until each thread has finished its current
// batch.
class BatchLoader {
 public:
  // Starts gathering immediately. Throws std::system_error when a thread cannot be started.
  BatchLoader(std::shared_ptr<const Dataset> dataset, BatchPlan plan,
              const BatchLoaderOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Returns the next batch, or nullopt after the last. On a GPU its copy may still be in progress;
  // the current stream waits for it, the caller does not. kUnavailable, with the batch number and
  // the cause, if that batch could not be gathered; kInvalidArgument, with the data set's own
  // sentence, if one of its samples is invalid, or if it does not have exactly one row per sample.
  // Later calls still return the following batches.
  absl::StatusOr<std::optional<LoadedBatch>> Next();

 private:
  class Pipeline;
  const std::unique_ptr<Pipeline> pipeline_;
};

// Copies batches from CPU memory to a GPU while it computes.

// Uses a separate stream, so that a GPU computes one batch while it receives the next. Only the
// consuming stream waits for a copy. On the CPU batches are passed through.
class DeviceCopies {
 public:
  // A batch being copied.
  struct Copy {
    Batch batch;
    std::optional<c10::Event> arrival;  // nullopt: complete
  };

  explicit DeviceCopies(const at::Device& device);

  // Call it first in each thread that calls Begin() but not Receive(): otherwise CUDA would choose
  // the first GPU for it.
  void EnterThread() const;
  // Copies `batch` into pinned memory, and starts its transfer. Returns at once. Any thread. Throws
  // c10::Error, for example if there is not enough memory.
  Copy Begin(Batch batch) const;
  // The batch, for the calling thread's current stream, which waits for it; the thread does not.
  Batch Receive(Copy copy) const;

 private:
  at::Tensor Fetch(const at::Tensor& tensor) const;

  const at::Device device_;
  std::optional<c10::Stream> stream_;  // nullopt on the CPU
};

}  // namespace muster::trainer
