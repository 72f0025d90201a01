// Prepares the batches of an epoch in the background, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/loading/global_order.h"

namespace muster::trainer {

struct BatchLoaderOptions {
  std::int64_t epoch = 0;
  bool train = true;
  // Threads that gather batches; 0: Next() gathers them itself.
  int threads = 1;
  // The most batches that may be ready or in preparation at once; at least 1. Limits memory use.
  int queue = 4;
  // Where batches are to be when Next() returns them; the calling thread's current device, if it is
  // a GPU.
  at::Device device = at::kCPU;
};

struct LoadedBatch {
  Batch data;  // on the loader's device
  // The plan from which `data` was gathered, including the indices.
  RankBatch plan;
};

// Hands out one rank's batches of one epoch. Each batch has a ticket, its position in the epoch.
// Threads draw tickets in order and store each batch under its ticket, so the order does not depend
// on the number of threads. Nothing polls: threads block until there is room, and Next() until its
// batch is ready. A batch is planned when its ticket is drawn, so memory does not depend on the
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

  // Returns the next batch, or nullopt after the last. On a GPU it may still be on its way, for
  // which the current stream waits and the caller does not. kUnavailable, with the batch number and
  // the cause, when that batch could not be gathered; kInvalidArgument, with the data set's own
  // sentence, when one of its samples is invalid, or when it has other than a row for each sample.
  // Later calls still return the following batches.
  absl::StatusOr<std::optional<LoadedBatch>> Next();

 private:
  class Pipeline;
  const std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace muster::trainer
