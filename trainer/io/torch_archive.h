// A file of torch.save, taken apart.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/byte_source.h"
#include "trainer/io/pickle/stored_value.h"
#include "trainer/io/zip/zip_reader.h"

namespace muster::trainer {

// The value in a file of torch.save, and where its elements are. Knows nothing of LibTorch. Errors
// are one clause without the file's name: kUnavailable when reading fails, else kInvalidArgument.
class TorchArchive {
 public:
  // Reads all but the elements. `source` outlives this object. Each storage is there with as many
  // bytes as its elements take.
  static absl::StatusOr<TorchArchive> Open(const ByteSource& source);

  // Its tensors lie within storages().
  const StoredValue& value() const { return value_; }
  const std::vector<Storage>& storages() const { return storages_; }

  // Fills `out` with the elements of storages()[`index`]. Refuses a bool that is neither 0 nor 1.
  absl::Status ReadStorage(std::size_t index, void* out) const;

 private:
  explicit TorchArchive(ZipReader zip) : zip_(std::move(zip)) {}

  ZipReader zip_;
  StoredValue value_;
  std::vector<Storage> storages_;
  std::vector<ZipReader::Record> records_;  // of storages_
};

}  // namespace muster::trainer
