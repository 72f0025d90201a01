#include "trainer/io/torch_archive.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "trainer/io/pickle/pickle_reader.h"

namespace muster::trainer {
namespace {

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

bool AreBools(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0 || byte == 1; });
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

}  // namespace muster::trainer
