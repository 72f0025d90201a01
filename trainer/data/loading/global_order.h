// Where all ranks together are in an epoch, and what each takes next.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::trainer {

// One rank's part of a step.
struct RankBatch {
  // The samples this rank passes through the model: as many on every rank, at least one.
  std::vector<std::int64_t> indices;
  // The first this many of them are its own. Those after only fill it up to the length of the
  // others' and must not count; another rank, or another step, has them too.
  std::int64_t own = 0;
  // The samples in the whole step, over all ranks: the sum of `own`.
  std::int64_t global = 0;
  // Samples of the epoch that all ranks have consumed once this step is done: the position to go on
  // from.
  std::int64_t end_position = 0;

  // Samples that count, per rank on average. A rank whose loss is the sum over its own samples
  // divided by this makes DDP's mean over ranks the gradient of the mean over the whole batch.
  double mean_own(int world_size) const {
    return static_cast<double>(global) / static_cast<double>(world_size);
  }
};

// An epoch as one global order of all samples, the permutation of seed + epoch. A step takes the
// next run of `batch` samples of it, whatever the world size: rank r of W takes the places
// r, r + W, r + 2W, ... of the run. So the position in an epoch is one number, how many samples all
// ranks have consumed, and a run that goes on from it, with another world size if need be, takes
// exactly the samples that are left, in the same batches. W need not divide the batch.
//
// With W dividing the batch and position a multiple of it, ranks get what
// torch.utils.data.DistributedSampler (torch 1.13 and 2.x) deals them: its torch.randperm is
// MT19937 and a Fisher-Yates shuffle (permutation.h). A value without threads of its own; const
// methods may be called from any.
class GlobalOrder {
 public:
  // `dataset_size` is at least 1. Without `shuffle` the order is 0, 1, 2, ...
  GlobalOrder(std::int64_t dataset_size, std::uint64_t seed, std::int64_t epoch,
              bool shuffle = true);

  std::int64_t size() const { return static_cast<std::int64_t>(order_.size()); }

  // How many steps of `batch` are left from `position`.
  std::int64_t StepsLeft(std::int64_t position, std::int64_t batch) const;

  // The part of rank `rank` of `world_size` in the step that begins at `position`, in [0, size()).
  // The last step of an epoch may be smaller than `batch`.
  RankBatch At(std::int64_t position, std::int64_t batch, int rank, int world_size) const;

  // At() for each step from `position` to the end of the epoch; empty when position == size().
  std::vector<RankBatch> From(std::int64_t position, std::int64_t batch, int rank,
                              int world_size) const;

 private:
  std::vector<std::int64_t> order_;
};

}  // namespace muster::trainer
