// The order of samples in an epoch, and each rank's part of every step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "trainer/data/loading/keyed_permutation.h"

namespace muster::trainer {

// One rank's part of a step.
struct RankBatch {
  // The samples this rank passes through the model: the same number on every rank, at least one.
  std::vector<std::int64_t> indices;
  // The first `own` of them are this rank's own. The rest only pad the batch to the length of the
  // other ranks' and must not count: they belong to another rank or another step.
  std::int64_t own = 0;
  // The number of samples in the whole step: the sum of `own` over all ranks.
  std::int64_t global = 0;
  // Samples of the epoch that all ranks together have consumed after this step: the position from
  // which to continue.
  std::int64_t end_position = 0;

  // The mean of `own` over the ranks. If each rank's loss is the sum over its own samples divided
  // by this, DDP's mean over the ranks is the gradient of the mean over the whole batch.
  double mean_own(int world_size) const {
    return static_cast<double>(global) / static_cast<double>(world_size);
  }
};

// One rank's parts of a run of steps, each made on demand.
struct BatchPlan {
  std::int64_t steps = 0;
  // Returns the part in `step`, in [0, steps). May be called from any thread.
  std::function<RankBatch(std::int64_t step)> at;
};

// Orders of more samples than this are not stored; one of this size takes half a gigabyte.
inline constexpr std::int64_t kLargestStoredOrder = std::int64_t{1} << 26;

// The global order of all samples in an epoch: a permutation drawn from seed and epoch. For any
// world size, a step takes the next `batch` samples in that order, and rank r of W takes positions
// r, r + W, r + 2W, ... of these. So the position in an epoch is a single number: how many samples
// all ranks together have consumed. A run that resumes from it, even with another world size, takes
// exactly the remaining samples in the same batches. W need not divide the batch.
//
// If W divides both the batch and the position, ranks get the same samples as from
// torch.utils.data.DistributedSampler (torch 1.13 and 2.x), whose torch.randperm is MT19937 and a
// Fisher-Yates shuffle (permutation.h). That takes 8 bytes per sample; above kLargestStoredOrder
// samples the permutation is a different one, which takes no memory (keyed_permutation.h).
//
// A plain value, cheap to copy; const methods may be called from any thread.
class GlobalOrder {
 public:
  // `dataset_size` must be at least 1. Without `shuffle` the order is 0, 1, 2, ...
  GlobalOrder(std::int64_t dataset_size, std::uint64_t seed, std::int64_t epoch,
              bool shuffle = true);

  std::int64_t size() const { return size_; }

  // The number of steps of `batch` samples left from `position`.
  std::int64_t StepsLeft(std::int64_t position, std::int64_t batch) const;

  // The part of rank `rank` of `world_size` in the step that begins at `position`, in [0, size()).
  // The last step of an epoch may be smaller than `batch`.
  RankBatch At(std::int64_t position, std::int64_t batch, int rank, int world_size) const;

  // At() for each step from `position` to the end of the epoch; no steps when position == size().
  BatchPlan From(std::int64_t position, std::int64_t batch, int rank, int world_size) const;

 private:
  struct Unshuffled {};
  using Stored = std::shared_ptr<const std::vector<std::int64_t>>;

  // Returns the sample at position `place` of the order.
  std::int64_t Sample(std::int64_t place) const;

  std::int64_t size_;
  std::variant<Unshuffled, Stored, KeyedPermutation> order_;
};

}  // namespace muster::trainer
