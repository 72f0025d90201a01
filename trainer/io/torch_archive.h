// Parses a torch.save file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/byte_source.h"
#include "trainer/io/pickle/stored_value.h"
#include "trainer/io/zip/zip_reader.h"

namespace muster::trainer {

// The value in a torch.save file, and where its elements are. Independent of LibTorch. Errors are
// one clause without the file's name: kUnavailable when reading fails, otherwise kInvalidArgument.
class TorchArchive {
 public:
  // Reads everything but the elements, and checks that each storage's record exists with the right
  // size. `source` must outlive this object.
  static absl::StatusOr<TorchArchive> Open(const ByteSource& source);

  // Its tensors are views into storages().
  const StoredValue& value() const { return value_; }
  const std::vector<Storage>& storages() const { return storages_; }

  // Fills `out` with the elements of storages()[`index`]. An error if a bool is neither 0 nor 1.
  absl::Status ReadStorage(std::size_t index, void* out) const;
  // Reads all elements, and refuses what ReadStorage would refuse, but keeps none of them.
  absl::Status CheckStorages() const;
  // Where in the source the elements of storages()[`index`] begin.
  std::uint64_t OffsetOf(std::size_t index) const { return records_[index].offset; }

 private:
  explicit TorchArchive(ZipReader zip) : zip_(std::move(zip)) {}

  ZipReader zip_;
  StoredValue value_;
  std::vector<Storage> storages_;
  std::vector<ZipReader::Record> records_;  // for each of storages_
};

}  // namespace muster::trainer
