#include "trainer/io/formats/torch_archive.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/io/formats/pickle_reader.h"

namespace muster::trainer {
namespace {

// Why not LibTorch's own reader (caffe2::serialize::PyTorchStreamReader, torch::jit::Unpickler;
// tried with 1.13.1): it reads what LibTorch's Pickler writes, not what Python does. It refuses
// each state_dict(), for its _metadata (BUILD), and lists of one value (APPEND), Parameters,
// torch.Size and most ints of more than 32 bits. A gate in front of it would have to be all of the
// reader below: it crashes where a pickle takes from an empty stack or nests 300,000 tuples, makes
// tensors beyond their storage, does not verify checksums, and allocates what a file says that it
// unpacks to, 4 GB for one of 4 KB.

constexpr std::uint64_t kLargestPickle = 64 << 20;

// What the file is, if it is not a zip file. Python's own writing before 1.6 (legacy_save) begins
// with a pickled magic number.
absl::Status CheckBeginning(const ByteSource& source) {
  constexpr std::string_view kZip("PK\x03\x04", 4);
  constexpr std::string_view kLegacy("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
                                     14);
  std::string beginning(std::min<std::uint64_t>(source.size(), kLegacy.size()), '\0');
  if (absl::Status status = source.Read(0, beginning.data(), beginning.size()); !status.ok()) {
    return status;
  }
  if (beginning.rfind(kZip, 0) == 0) return absl::OkStatus();
  if (beginning == kLegacy) {
    return absl::InvalidArgumentError(
        "it is in the format of PyTorch before 1.6; load it in Python and save it with torch.save");
  }
  return absl::InvalidArgumentError("it is not a file of torch.save");
}

// The folder within the zip file that everything is in, with its slash. torch.save names it after
// the file.
absl::StatusOr<std::string> FindRoot(const ZipReader& zip) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string root;
  for (const auto& [name, record] : zip.records()) {
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos && std::string_view(name).substr(slash) == kPickle) {
      if (!root.empty()) return absl::InvalidArgumentError("it is not a file of torch.save");
      root = name.substr(0, slash + 1);
    }
  }
  if (root.empty()) return absl::InvalidArgumentError("it is not a file of torch.save");
  if (zip.Find(root + "constants.pkl") != nullptr) {
    return absl::InvalidArgumentError(
        "it is a TorchScript program (torch.jit.save); save its state_dict() with torch.save");
  }
  return root;
}

absl::StatusOr<std::string> ReadText(const ZipReader& zip, const ZipReader::Record& record,
                                     std::uint64_t limit) {
  if (record.size > limit) return absl::InvalidArgumentError("its pickle is too large");
  std::string text(record.size, '\0');
  if (absl::Status status = zip.Read(record, text.data()); !status.ok()) return status;
  return text;
}

absl::Status BadBool() {
  return absl::InvalidArgumentError("it is damaged: a bool is neither true nor false");
}

}  // namespace

absl::StatusOr<TorchArchive> TorchArchive::Open(const ByteSource& source) {
  if (absl::Status status = CheckBeginning(source); !status.ok()) return status;
  absl::StatusOr<ZipReader> zip = ZipReader::Open(source);
  if (!zip.ok()) return zip.status();
  absl::StatusOr<std::string> root = FindRoot(*zip);
  if (!root.ok()) return root.status();
  if (const ZipReader::Record* order = zip->Find(*root + "byteorder")) {
    absl::StatusOr<std::string> name = ReadText(*zip, *order, 16);
    if (!name.ok()) return name.status();
    if (*name != "little") {
      return absl::InvalidArgumentError("it is from a machine with another order of bytes");
    }
  }
  absl::StatusOr<std::string> pickle =
      ReadText(*zip, *zip->Find(*root + "data.pkl"), kLargestPickle);
  if (!pickle.ok()) return pickle.status();
  absl::StatusOr<PickledContents> contents = ReadPickle(*pickle);
  if (!contents.ok()) return contents.status();

  TorchArchive archive(std::move(*zip));
  archive.value_ = std::move(contents->value);
  archive.storages_ = std::move(contents->storages);
  for (const Storage& storage : archive.storages_) {
    const ZipReader::Record* record = archive.zip_.Find(absl::StrCat(*root, "data/", storage.key));
    const std::uint64_t elements = static_cast<std::uint64_t>(storage.elements);
    const std::uint64_t size = ElementSize(storage.dtype);
    if (record == nullptr || record->size % size != 0 || record->size / size != elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is damaged: storage ", storage.key, " is missing or of a wrong size"));
    }
    archive.records_.push_back(*record);
  }
  return archive;
}

absl::Status TorchArchive::ReadStorage(std::size_t index, void* out) const {
  const ZipReader::Record& record = records_[index];
  if (absl::Status status = zip_.Read(record, out); !status.ok()) return status;
  const bool sound = storages_[index].dtype != Dtype::kBool ||
                     AreBools(std::string_view(static_cast<const char*>(out), record.size));
  return sound ? absl::OkStatus() : BadBool();
}

absl::Status TorchArchive::CheckStorages() const {
  for (std::size_t i = 0; i < storages_.size(); ++i) {
    bool sound = true;
    const bool bools = storages_[i].dtype == Dtype::kBool;
    const absl::Status status =
        zip_.Scan(records_[i], [&](std::string_view piece) { sound &= !bools || AreBools(piece); });
    if (!status.ok()) return status;
    if (!sound) return BadBool();
  }
  return absl::OkStatus();
}

namespace {

constexpr int kDeepest = 100;  // as the reader allows

// Appends the opcodes of Python's pickletools.py.
class Writer {
 public:
  explicit Writer(const std::vector<Storage>& storages) : storages_(storages) {}

  absl::StatusOr<std::string> Write(const StoredValue& value) && {
    bytes_ = "\x80\x02";
    if (absl::Status status = Tree(value, 1); !status.ok()) return status;
    return std::move(bytes_) + '.';
  }

 private:
  absl::Status Tree(const StoredValue& value, int depth) {
    if (depth > kDeepest) {
      return absl::InvalidArgumentError("lists or dicts are within one another too deeply");
    }
    switch (value.kind()) {
      case ValueKind::kNone:
        bytes_ += 'N';
        return absl::OkStatus();
      case ValueKind::kBool:
        Bool(*value.boolean());
        return absl::OkStatus();
      case ValueKind::kInt:
        Integer(*value.integer());
        return absl::OkStatus();
      case ValueKind::kFloat:
        Float(*value.floating());
        return absl::OkStatus();
      case ValueKind::kString:
        return String(*value.string());
      case ValueKind::kTensor:
        Tensor(*value.tensor());
        return absl::OkStatus();
      case ValueKind::kTuple:
        bytes_ += '(';
        return Items(*value.list(), 't', depth);
      case ValueKind::kList:
        bytes_ += "](";
        return Items(*value.list(), 'e', depth);
      case ValueKind::kDict:
        return Dict(*value.dict(), depth);
    }
    std::abort();
  }

  // What follows a mark, and the opcode that takes it.
  absl::Status Items(const StoredValue::List& items, char code, int depth) {
    for (const StoredValue& item : items) {
      if (absl::Status status = Tree(item, depth + 1); !status.ok()) return status;
    }
    bytes_ += code;
    return absl::OkStatus();
  }

  absl::Status Dict(const StoredDict& dict, int depth) {
    if (dict.ordered()) {
      OrderedDict();
    } else {
      bytes_ += '}';
    }
    bytes_ += '(';
    for (const auto& [key, value] : dict) {
      if (const auto* number = std::get_if<std::int64_t>(&key)) {
        Integer(*number);
      } else if (absl::Status status = String(std::get<std::string>(key)); !status.ok()) {
        return status;
      }
      if (absl::Status status = Tree(value, depth + 1); !status.ok()) return status;
    }
    bytes_ += 'u';
    return absl::OkStatus();
  }

  // A call of torch._utils._rebuild_tensor_v2.
  void Tensor(const StoredTensor& tensor) {
    const Storage& storage = storages_[tensor.storage];
    Global("torch._utils", "_rebuild_tensor_v2");
    bytes_ += "((";
    ShortString("storage");
    Global("torch", StorageClass(storage.dtype));
    ShortString(storage.key);
    ShortString("cpu");
    Integer(storage.elements);
    bytes_ += "tQ";  // the persistent id
    Integer(tensor.offset);
    Integers(tensor.sizes);
    Integers(tensor.strides);
    Bool(false);    // requires_grad
    OrderedDict();  // backward hooks
    bytes_ += "tR";
  }

  void OrderedDict() {
    Global("collections", "OrderedDict");
    bytes_ += ")R";
  }

  void Global(const char* module, const char* name) {
    bytes_.append("c").append(module).append("\n").append(name).append("\n");
  }

  void Bool(bool value) { bytes_ += value ? '\x88' : '\x89'; }

  void Integers(const std::vector<std::int64_t>& values) {
    bytes_ += '(';
    for (const std::int64_t value : values) Integer(value);
    bytes_ += 't';
  }

  void Integer(std::int64_t value) {
    if (value >= 0 && value <= 0xff) {
      bytes_ += 'K';
      LittleEndian(static_cast<std::uint64_t>(value), 1);
    } else if (value == static_cast<std::int32_t>(value)) {
      bytes_ += 'J';
      LittleEndian(static_cast<std::uint64_t>(value), 4);
    } else {
      bytes_ += "\x8a\x08";  // LONG1 of 8 bytes
      LittleEndian(static_cast<std::uint64_t>(value), 8);
    }
  }

  void Float(double value) {  // the only number that is big-endian
    bytes_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift);
  }

  absl::Status String(const std::string& text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
      return absl::InvalidArgumentError("a string is longer than 4 GiB");
    }
    ShortString(text);
    return absl::OkStatus();
  }

  void ShortString(const std::string& text) {
    bytes_ += 'X';
    LittleEndian(text.size(), 4);
    bytes_ += text;
  }

  void LittleEndian(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }

  const std::vector<Storage>& storages_;
  std::string bytes_;
};

}  // namespace

absl::StatusOr<std::string> WritePickle(const StoredValue& value,
                                        const std::vector<Storage>& storages) {
  return Writer(storages).Write(value);
}

}  // namespace muster::trainer
