// What the pickle of a checkpoint holds: Python's values with tensors that are places in storages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/io/dtype.h"
#include "trainer/io/pickle/basic_value.h"

namespace muster::trainer {

// A view into a storage: element (i, j, ...) is storage[offset + i * strides[0] + j *
// strides[1]...].
struct StoredTensor {
  std::size_t storage = 0;  // an index into the storages of the file
  std::int64_t offset = 0;  // the following three are in elements
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

using StoredValue = BasicValue<StoredTensor>;
using StoredDict = BasicDict<StoredTensor>;

// A run of elements in the file, on which tensors are views.
struct Storage {
  std::string key;  // it is the record data/<key>
  Dtype dtype = Dtype::kFloat32;
  std::int64_t elements = 0;
};

}  // namespace muster::trainer
