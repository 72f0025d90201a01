// Prepares the batches of an epoch ahead of the training, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/loading/global_order.h"

namespace muster::trainer {

struct BatchLoaderOptions {
  std::int64_t epoch = 0;
  bool train = true;
  // Threads that gather batches; 0: Next() does it itself.
  int threads = 1;
  // How many batches may be ready or in the making at once; at least 1. Bounds the memory.
  int queue = 4;
};

struct LoadedBatch {
  Batch data;
  // What `data` was gathered from, indices included.
  RankBatch plan;
};

// Hands out one rank's batches of one epoch. Each batch has a ticket, its place in the epoch;
// threads draw tickets in order and put what they made where the ticket says, so the order is the
// same for any number of threads. Nobody polls: a thread waits until there is room, Next() until
// its batch is there. To go on in the middle of an epoch, give it the batches from there.
//
// Next() is for one thread. Destroying the loader stops its threads after the batch in hand.
class BatchLoader {
 public:
  // Starts gathering at once. Throws std::system_error when a thread cannot be started.
  BatchLoader(std::shared_ptr<const Dataset> dataset, std::vector<RankBatch> batches,
              const BatchLoaderOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The next batch; nullopt after the last. kUnavailable, with the batch and the cause, when that
  // batch could not be gathered, whichever thread tried; the batches after it can still be had.
  absl::StatusOr<std::optional<LoadedBatch>> Next();

 private:
  class Pipeline;
  const std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace muster::trainer
