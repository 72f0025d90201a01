// Labelled images in memory, and batches of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Images as bytes with a class each. A batch is gathered and normalized in one go, which is many
// times faster than stacking samples one by one. Copies share their memory; nothing in it is ever
// written.
class ImageSet {
 public:
  // `images`: uint8, N x 1 x 28 x 28. `labels`: int64, N. Each label is in [0, 10).
  ImageSet(at::Tensor images, at::Tensor labels);

  std::int64_t size() const;

  // The images numbered `indices` as float32, with the mean and deviation of Fashion-MNIST taken
  // out, and their classes. The tensors are on the CPU.
  struct Batch {
    at::Tensor images;  // B x 1 x 28 x 28
    at::Tensor labels;  // B
  };
  Batch Gather(const std::vector<std::int64_t>& indices) const;

 private:
  at::Tensor images_;
  at::Tensor labels_;
};

struct TrainAndTest {
  ImageSet train;
  ImageSet test;
};

// Reads the four files of MNIST or Fashion-MNIST ("train-images-idx3-ubyte" and so on, plain or
// .gz) in `dir`. kInvalidArgument and one sentence when one is missing, damaged or not what its
// name says.
absl::StatusOr<TrainAndTest> LoadIdxImages(const std::string& dir);

// The generated data set: 2050 images to train on, a number that neither batches nor ranks divide,
// and 500 to test.
TrainAndTest MakeGeneratedImages();

}  // namespace muster::trainer
