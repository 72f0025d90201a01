// Reads CIFAR-10 in its binary form (https://www.cs.toronto.edu/~kriz/cifar.html): files of
// 3073-byte records, each a label and then 32 x 32 red, green and blue values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/samples/image_samples.h"

namespace muster::trainer {

struct CifarImages {
  LabelledImages train;  // data_batch_1.bin to data_batch_5.bin, in that order
  LabelledImages test;   // test_batch.bin
};

// Reads the six files in `dir`, or in its subdirectory cifar-10-batches-bin if there is one.
// kInvalidArgument and one sentence that names the file when it is missing or unreadable, is empty
// or above 1 GiB, is not a whole number of records, or has a label above 9.
absl::StatusOr<CifarImages> ReadCifar10(const std::string& dir);

// Reads the IDX format, in which MNIST and similar data sets are published, plain or gzipped.
// Format: http://yann.lecun.com/exdb/mnist ("THE IDX FILE FORMAT"): two zero bytes, a type byte,
// the number of dimensions, each dimension as a big-endian 32-bit number, then the elements.

// An array of unsigned bytes in row-major order.
struct IdxArray {
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> bytes;  // as many as the product of dims
};

// Reads the whole file at `path`. kInvalidArgument and one sentence that names the file when it
// cannot be read, or is not exactly one IDX array of unsigned bytes with 1 to 4 dimensions and at
// most 4 GiB.
absl::StatusOr<IdxArray> ReadIdx(const std::string& path);

// Reads `name` in the directory `dir`, or `name`.gz if there is no such file. Errors as above.
absl::StatusOr<IdxArray> ReadIdxFrom(const std::string& dir, const std::string& name);

// The images of MNIST and similar data sets: pairs of IDX files.

// Reads "`split`-images-idx3-ubyte" and "`split`-labels-idx1-ubyte" in `dir`, plain or .gz; `split`
// is "train" or "t10k". kInvalidArgument and one sentence when a file is missing or damaged, or
// when the two are not grey images of 28 x 28 pixels with a label from 0 to 9 each.
absl::StatusOr<LabelledImages> ReadIdxImages(const std::string& dir, const std::string& split);

// Generated images, for tests and machines without a data set.

// Generates `count` grey images of 28 x 28 pixels in ten classes. Each class is a pattern of 8 x 8
// pixel blocks, with shifts and noise, so a small model learns them within an epoch. The same
// `count` and `seed` give the same bytes on every machine.
LabelledImages GenerateImageSet(std::int64_t count, std::uint64_t seed);

}  // namespace muster::trainer
