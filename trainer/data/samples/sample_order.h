// Pseudorandom numbers that depend only on their arguments: the same on every rank and thread, and
// after every restart.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace muster::trainer {

// Returns a hash of `x`: each bit depends on every bit of `x`.
std::uint64_t MixedBits(std::uint64_t x);

// The same for three arguments, for example to choose a sample's augmentation.
std::uint64_t MixedBits(std::uint64_t seed, std::int64_t epoch, std::int64_t index);

// The random order of an epoch's samples.

// torch.randperm(size, generator=g) for a CPU generator g seeded with `seed`, of which MT19937
// takes the low 32 bits (ATen/native/TensorFactories.cpp, randperm_cpu). Gives the same result as
// every LibTorch from 1.13 to 2.x, but does not need LibTorch.
std::vector<std::int64_t> RandomPermutation(std::int64_t size, std::uint64_t seed);

// The order of an epoch for data sets so large that it cannot be stored.

// A permutation of 0 to size - 1 drawn from `seed` and `epoch`, of which each element is computed
// on demand: a Feistel network over the next power of two, applied until the result is below `size`
// (cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Takes no
// memory. For very small sizes not all orders are equally likely. A plain value; methods may be
// called from any thread.
class KeyedPermutation {
 public:
  // `size` must be at least 1.
  KeyedPermutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return size_; }

  // Returns the number at position `place`, in [0, size()).
  std::int64_t At(std::int64_t place) const;

 private:
  static constexpr int kRounds = 6;

  std::uint64_t Permute(std::uint64_t x) const;

  std::int64_t size_;
  // The bits of a number's two halves. They swap in each round, so kRounds is even.
  int high_bits_;
  int low_bits_;
  std::array<std::uint64_t, kRounds> keys_;
};

// The order of samples in an epoch, and each rank's part of every step.

// One rank's part of a step.
struct RankBatch {
  // The samples this rank passes through the model: the same number on every rank, at least one.
  std::vector<std::int64_t> indices;
  // The first `own` of them are this rank's own. The rest only pad the batch to the other ranks'
  // length and must not count: they belong to another rank or step.
  std::int64_t own = 0;
  // The number of samples in the whole step: the sum of `own` over all ranks.
  std::int64_t global = 0;
  // Samples of the epoch consumed by all ranks after this step: the position to resume from.
  std::int64_t end_position = 0;

  // The mean of `own` over the ranks. If each rank's loss is the sum over its own samples divided
  // by this, DDP's mean over the ranks is the gradient of the mean over the whole batch.
  double mean_own(int world_size) const {
    return static_cast<double>(global) / static_cast<double>(world_size);
  }
};

// One rank's parts of consecutive steps, each computed on demand.
struct BatchPlan {
  std::int64_t steps = 0;
  // Returns the part in `step`, in [0, steps). May be called from any thread.
  std::function<RankBatch(std::int64_t step)> at;
};

// Larger orders are not stored; one of this size takes half a gigabyte.
inline constexpr std::int64_t kLargestStoredOrder = std::int64_t{1} << 26;

// The global order of all samples in an epoch: a permutation drawn from seed and epoch. For any
// world size, a step takes the next `batch` samples in that order, and rank r of W takes positions
// r, r + W, r + 2W, ... of these. So the position in an epoch is a single number: how many samples
// all ranks together have consumed. A run that resumes from it, even with another world size, takes
// exactly the remaining samples in the same batches. W need not divide the batch.
//
// If W divides both the batch and the position, ranks get the same samples as from
// torch.utils.data.DistributedSampler (torch 1.13 and 2.x), whose torch.randperm is MT19937 and a
// Fisher-Yates shuffle (RandomPermutation). That takes 8 bytes per sample; above
// kLargestStoredOrder samples a KeyedPermutation is used instead, which takes no memory.
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

// Which samples are held out for testing if the data has no test split.

// For each of `size` samples, whether it is held out: the first round(size * share) of a random
// permutation, but at least one, and never all. Depends only on the arguments, so all ranks and all
// restarts agree. `size` must be at least 2, and `share` in [0, 1].
std::vector<bool> HoldOut(std::int64_t size, double share, std::uint64_t seed);

// Random augmentation of training images: mirroring, and shifting by a few pixels.

struct AugmentationOptions {
  // Mirror left and right with probability 1/2 (torchvision's RandomHorizontalFlip).
  bool flip = false;
  // Pad the image with this many black pixels on each side and crop it at a random place
  // (torchvision's RandomCrop(size, padding)); 0: do not.
  int crop_padding = 0;
  std::uint64_t seed = 0;
};

// The augmentation of one image. Pixel (y, x) of the result is the original's pixel (y + down,
// mirrored ? width - 1 - (x + right) : x + right), or black if that is outside the image.
struct ImageVariation {
  bool mirrored = false;
  int down = 0;   // in [-crop_padding, crop_padding]
  int right = 0;  // in [-crop_padding, crop_padding]

  bool operator==(const ImageVariation&) const = default;
};

// The augmentation of image `index` in `epoch`. Depends only on the arguments, not on rank, thread,
// batch or world size, so runs that restart or change size see the same images.
ImageVariation VariationOf(const AugmentationOptions& options, std::int64_t epoch,
                           std::int64_t index);

}  // namespace muster::trainer
