// Reads the IDX format, in which MNIST and similar data sets are published, plain or gzipped.
// Format: http://yann.lecun.com/exdb/mnist ("THE IDX FILE FORMAT"): two zero bytes, a type byte,
// the number of dimensions, each dimension as a big-endian 32-bit number, then the elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
