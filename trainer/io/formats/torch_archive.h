// Parses a torch.save file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/value_tree.h"
#include "trainer/io/formats/zip_archive.h"

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

// Writes the pickle in a file of torch.save.

// Pickles `value`, whose tensors are views into `storages`, as torch.save does, with protocol 2.
// Writes each object in full where it occurs, without references to earlier ones, so that equal
// values give equal bytes. kInvalidArgument, with one clause, when the tree is deeper than 100 or a
// string is longer than 4 GiB.
absl::StatusOr<std::string> WritePickle(const StoredValue& value,
                                        const std::vector<Storage>& storages);

}  // namespace muster::trainer
