// Which samples each rank trains on: PyTorch's DistributedSampler, index for index.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::trainer {

struct SamplerOptions {
  std::int64_t dataset_size = 0;  // at least 1
  int rank = 0;                   // in [0, world_size)
  int world_size = 1;
  bool shuffle = true;
  std::uint64_t seed = 0;
  // Leave out the samples that cannot be dealt evenly, rather than deal some of them twice.
  bool drop_last = false;
};

// Deals the samples of a data set to ranks, in an order that all ranks agree on without talking:
// each epoch shuffles all samples with a generator seeded by seed + epoch, and rank r of W takes
// the places r, r + W, r + 2W, ... So the k-th batch of size B of all ranks together is always the
// k-th run of B * W samples of that order, whatever W is: this is what makes the loss curve
// independent of the world size.
//
// The order is that of torch.utils.data.DistributedSampler (torch 1.13 and 2.x). Its torch.randperm
// is MT19937 and a Fisher-Yates shuffle (ATen/native/TensorFactories.cpp, randperm_cpu), so no
// LibTorch is needed here. Not thread-safe; a plain value otherwise.
class DistributedSampler {
 public:
  explicit DistributedSampler(const SamplerOptions& options) : options_(options) {}

  // Chooses the epoch whose order Indices() returns; 0 at first.
  void SetEpoch(std::int64_t epoch) { epoch_ = epoch; }

  // How many samples each rank takes in an epoch, the same for all ranks.
  std::int64_t samples_per_rank() const;

  // How many of the first `count` samples of Indices() are this rank's own; those after them only
  // fill it up to the length of the other ranks, and repeat samples that another rank has too.
  std::int64_t OwnAmongFirst(std::int64_t count) const;

  // This rank's samples in this epoch, in order; samples_per_rank() of them.
  std::vector<std::int64_t> Indices() const;

 private:
  SamplerOptions options_;
  std::int64_t epoch_ = 0;
};

}  // namespace muster::trainer
