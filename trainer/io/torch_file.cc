#include "trainer/io/torch_file.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "absl/strings/str_cat.h"

#include "trainer/io/formats/files.h"
#include "trainer/io/formats/torch_archive.h"
#include "trainer/io/formats/value_tree.h"
#include "trainer/io/formats/zip_archive.h"
#include "trainer/io/safetensors.h"
#include "trainer/runtime/failure.h"

namespace muster::trainer {
namespace {

// Gives each tensor of a value a storage of its own, but the same one to the same elements.
class Collector {
 public:
  absl::StatusOr<StoredValue> operator()(const at::Tensor& tensor, const TreePlace& place) {
    const absl::StatusOr<Dtype> dtype = DtypeOf(tensor, ToString(place));
    if (!dtype.ok()) return dtype.status();
    const ElementsKey key = KeyOfElements(tensor);
    // Those without elements have no memory either.
    const auto known = tensor.numel() > 0 ? storage_of_.find(key) : storage_of_.end();
    std::size_t storage = tensors_.size();
    if (known != storage_of_.end()) {
      storage = known->second;
    } else {
      storage_of_.emplace(key, storage);
      tensors_.push_back(tensor);
      storages_.push_back({absl::StrCat(storage), *dtype, tensor.numel()});
    }
    StoredTensor stored = {.storage = storage, .sizes = tensor.sizes().vec()};
    std::int64_t stride = 1;
    for (std::size_t i = stored.sizes.size(); i-- > 0;) {
      stored.strides.insert(stored.strides.begin(), stride);
      stride *= std::max<std::int64_t>(stored.sizes[i], 1);
    }
    return StoredValue(std::move(stored));
  }

  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }  // one for each storage

 private:
  std::map<ElementsKey, std::size_t> storage_of_;
  std::vector<Storage> storages_;
  std::vector<at::Tensor> tensors_;
};

// The records in the order of torch/serialization.py, _save. The first error of the file ends it.
absl::Status WriteRecords(const std::string& pickle, const Collector& collector,
                          DurableFile& file) {
  ZipWriter zip(file);
  if (absl::Status status = zip.Add("archive/data.pkl", pickle); !status.ok()) return status;
  // Python looks for this since 2.1.
  if (absl::Status status = zip.Add("archive/byteorder", "little"); !status.ok()) return status;
  for (std::size_t i = 0; i < collector.tensors().size(); ++i) {
    const at::Tensor dense = DenseOnCpu(collector.tensors()[i]);
    const std::string name = absl::StrCat("archive/data/", collector.storages()[i].key);
    if (absl::Status status = zip.Add(name, BytesOf(dense)); !status.ok()) return status;
  }
  if (absl::Status status = zip.Add("archive/version", "3\n"); !status.ok()) return status;
  return zip.Finish();
}

// The elements of storage `index`, in memory of their own.
absl::StatusOr<at::Tensor> ReadElements(const TorchArchive& archive, std::size_t index) {
  const Storage& storage = archive.storages()[index];
  at::Tensor elements = EmptyTensor(storage.dtype, storage.elements);
  const absl::Status status = archive.ReadStorage(index, elements.data_ptr());
  if (!status.ok()) return status;
  return elements;
}

// The archive's value, whose tensors are views of `elements`, one tensor for each storage.
absl::StatusOr<Value> Assemble(const TorchArchive& archive,
                               const std::vector<at::Tensor>& elements) {
  const auto view = [&](const StoredTensor& stored, const TreePlace&) -> absl::StatusOr<Value> {
    const at::Tensor& whole = elements[stored.storage];
    return Value(
        whole.as_strided(stored.sizes, stored.strides, whole.storage_offset() + stored.offset));
  };
  return MapTensors<at::Tensor>(archive.value(), view);
}

absl::StatusOr<Value> ReadValue(const ByteSource& source) {
  const absl::StatusOr<TorchArchive> archive = TorchArchive::Open(source);
  if (!archive.ok()) return archive.status();
  std::vector<at::Tensor> elements;
  for (std::size_t i = 0; i < archive->storages().size(); ++i) {
    const absl::StatusOr<at::Tensor> read = ReadElements(*archive, i);
    if (!read.ok()) return read.status();
    elements.push_back(*read);
  }
  return Assemble(*archive, elements);
}

absl::StatusOr<Value> ViewValue(const at::Tensor& bytes) {
  const MemorySource source(BytesOf(bytes));
  const absl::StatusOr<TorchArchive> archive = TorchArchive::Open(source);
  if (!archive.ok()) return archive.status();
  if (const absl::Status status = archive->CheckStorages(); !status.ok()) return status;
  std::vector<at::Tensor> elements;
  for (std::size_t i = 0; i < archive->storages().size(); ++i) {
    const Storage& storage = archive->storages()[i];
    const auto offset = static_cast<std::int64_t>(archive->OffsetOf(i));
    const auto size = static_cast<std::int64_t>(ElementSize(storage.dtype));
    if ((bytes.storage_offset() + offset) % size == 0) {
      const at::Tensor part = bytes.narrow(0, offset, storage.elements * size);
      elements.push_back(part.view(ScalarTypeOf(storage.dtype)));
      continue;
    }
    const absl::StatusOr<at::Tensor> read = ReadElements(*archive, i);
    if (!read.ok()) return read.status();
    elements.push_back(*read);
  }
  return Assemble(*archive, elements);
}

}  // namespace

absl::StatusOr<Value> ReadTorchFile(const std::string& path) {
  absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  try {
    absl::StatusOr<Value> value = ReadValue(**source);
    if (value.ok()) return value;
    return ReadFailure(path, value.status());
  } catch (const std::exception& error) {  // there is no memory for the tensors
    return absl::UnavailableError(absl::StrCat("read ", path, ": ", OneLine(error)));
  }
}

absl::StatusOr<Value> ReadTorchBytes(const at::Tensor& bytes) {
  try {
    return ViewValue(bytes);
  } catch (const std::exception& error) {
    return absl::UnavailableError(OneLine(error));
  }
}

absl::Status CheckTorchFile(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  if (!source.ok()) return source.status();
  const absl::StatusOr<TorchArchive> archive = TorchArchive::Open(**source);
  return ReadFailure(path, archive.ok() ? archive->CheckStorages() : archive.status());
}

absl::Status WriteTorchFile(const Value& value, const std::string& path, Folder folder) {
  Collector collector;
  absl::StatusOr<StoredValue> stored = MapTensors<StoredTensor>(value, collector);
  absl::StatusOr<std::string> pickle = stored.ok() ? WritePickle(*stored, collector.storages())
                                                   : absl::StatusOr<std::string>(stored.status());
  if (!pickle.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("write ", path, ": ", pickle.status().message()));
  }
  absl::StatusOr<std::unique_ptr<DurableFile>> file = DurableFile::Create(path, folder);
  if (!file.ok()) return file.status();
  try {
    const absl::Status written = WriteRecords(*pickle, collector, **file);
    if (!written.ok()) return written;
  } catch (const std::exception& error) {  // a tensor cannot be copied to the CPU
    return absl::UnavailableError(absl::StrCat("write ", path, ": ", OneLine(error)));
  }
  return (*file)->Commit();
}

}  // namespace muster::trainer
