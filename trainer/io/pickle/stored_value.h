// The contents of a checkpoint's pickle: Python values whose tensors are views into storages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/io/dtype.h"
#include "trainer/io/pickle/basic_value.h"

namespace muster::trainer {

// A view into a storage: element (i, j, ...) is storage[offset + i * strides[0] + j * strides[1] +
// ...].
struct StoredTensor {
  std::size_t storage = 0;  // an index into the file's storages
  std::int64_t offset = 0;  // in elements, as are the next two
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

using StoredValue = BasicValue<StoredTensor>;
using StoredDict = BasicDict<StoredTensor>;

// An array of elements in the file, into which tensors are views.
struct Storage {
  std::string key;  // stored in the record data/<key>
  Dtype dtype = Dtype::kFloat32;
  std::int64_t elements = 0;
};

}  // namespace muster::trainer
