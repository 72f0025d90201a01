#include "trainer/io/formats/zip_archive.h"

#include <libdeflate.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

constexpr std::size_t kEndSize = 22;
constexpr std::size_t kLocatorSize = 20;
constexpr std::size_t kZip64EndSize = 56;
constexpr std::size_t kLocalSize = 30;
constexpr std::size_t kEntrySize = 46;
constexpr std::uint64_t kLargestDirectory = 64 << 20;
// Records are read in pieces, so that the checksum finds the bytes in the processor's cache.
constexpr std::uint64_t kPiece = 256 << 10;

absl::Status Broken(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("it is damaged: ", what));
}

// The little-endian number at `at`, which the caller knows to be within `bytes`.
std::uint64_t Number(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

absl::StatusOr<std::string> ReadPart(const ByteSource& source, std::uint64_t offset,
                                     std::uint64_t count) {
  if (offset > source.size() || count > source.size() - offset) {
    return Broken("a part lies beyond its end");
  }
  std::string bytes(count, '\0');
  if (absl::Status status = source.Read(offset, bytes.data(), bytes.size()); !status.ok()) {
    return status;
  }
  return bytes;
}

// Where the entries of the directory are.
struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

absl::StatusOr<Directory> FindDirectory(const ByteSource& source) {
  // The end record may be followed by a comment of up to 64 KiB.
  const std::uint64_t tail_size = std::min<std::uint64_t>(source.size(), kEndSize + 0xffff);
  const std::uint64_t tail_offset = source.size() - tail_size;
  absl::StatusOr<std::string> tail = ReadPart(source, tail_offset, tail_size);
  if (!tail.ok()) return tail.status();
  std::optional<std::size_t> end;
  for (std::size_t at = tail->size() < kEndSize ? 0 : tail->size() - kEndSize + 1; at-- > 0;) {
    if (Number(*tail, at, 4) == 0x06054b50 &&
        at + kEndSize + Number(*tail, at + 20, 2) == tail->size()) {
      end = at;
      break;
    }
  }
  if (!end) return Broken("its end is missing");
  Directory directory = {Number(*tail, *end + 16, 4), Number(*tail, *end + 12, 4),
                         Number(*tail, *end + 10, 2)};
  std::uint64_t limit = tail_offset + *end;
  if (*end >= kLocatorSize && Number(*tail, *end - kLocatorSize, 4) == 0x07064b50) {
    const std::uint64_t offset = Number(*tail, *end - kLocatorSize + 8, 8);
    absl::StatusOr<std::string> zip64 = ReadPart(source, offset, kZip64EndSize);
    if (!zip64.ok()) return zip64.status();
    if (Number(*zip64, 0, 4) != 0x06064b50) return Broken("its directory is missing");
    directory = {Number(*zip64, 48, 8), Number(*zip64, 40, 8), Number(*zip64, 32, 8)};
    limit = offset;
  }
  if (directory.offset > limit || directory.size > limit - directory.offset ||
      directory.size > kLargestDirectory || directory.count > directory.size / kEntrySize) {
    return Broken("its directory is out of bounds");
  }
  return directory;
}

// An entry of the directory.
struct Entry {
  std::string name;
  ZipReader::Record record;
  std::uint64_t header = 0;  // offset of the header ahead of the data
};

// Replaces those of `fields` that say "see the extra field" by what the extra field says.
bool ApplyZip64(const std::string& extra, const std::vector<std::uint64_t*>& fields) {
  std::size_t at = 0;
  while (extra.size() - at >= 4) {
    const std::uint64_t id = Number(extra, at, 2);
    const std::uint64_t size = Number(extra, at + 2, 2);
    at += 4;
    if (size > extra.size() - at) return false;
    if (id == 1) {
      std::size_t field = at;
      for (std::uint64_t* value : fields) {
        if (*value != 0xffffffff) continue;
        if (field + 8 > at + size) return false;
        *value = Number(extra, field, 8);
        field += 8;
      }
    }
    at += size;
  }
  return true;
}

// Reads the entry at `at` of the directory `bytes` and moves `at` behind it.
absl::StatusOr<Entry> ReadEntry(const std::string& bytes, std::size_t& at) {
  if (bytes.size() - at < kEntrySize || Number(bytes, at, 4) != 0x02014b50) {
    return Broken("its directory is cut short");
  }
  const std::uint64_t flags = Number(bytes, at + 8, 2);
  const std::uint64_t method = Number(bytes, at + 10, 2);
  const std::size_t name_size = Number(bytes, at + 28, 2);
  const std::size_t extra_size = Number(bytes, at + 30, 2);
  const std::size_t comment_size = Number(bytes, at + 32, 2);
  if (bytes.size() - at - kEntrySize < name_size + extra_size + comment_size) {
    return Broken("its directory is cut short");
  }
  Entry entry;
  entry.name = bytes.substr(at + kEntrySize, name_size);
  entry.record.crc = static_cast<std::uint32_t>(Number(bytes, at + 16, 4));
  std::uint64_t stored_size = Number(bytes, at + 20, 4);
  entry.record.size = Number(bytes, at + 24, 4);
  entry.header = Number(bytes, at + 42, 4);
  if (!ApplyZip64(bytes.substr(at + kEntrySize + name_size, extra_size),
                  {&entry.record.size, &stored_size, &entry.header})) {
    return Broken("a size is missing");
  }
  entry.record.plain = (flags & 1) == 0 && method == 0 && stored_size == entry.record.size;
  entry.record.size = stored_size;
  at += kEntrySize + name_size + extra_size + comment_size;
  return entry;
}

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(const ByteSource& source) {
  absl::StatusOr<Directory> directory = FindDirectory(source);
  if (!directory.ok()) return directory.status();
  absl::StatusOr<std::string> bytes = ReadPart(source, directory->offset, directory->size);
  if (!bytes.ok()) return bytes.status();

  ZipReader zip(source);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory->count; ++i) {
    absl::StatusOr<Entry> entry = ReadEntry(*bytes, at);
    if (!entry.ok()) return entry.status();
    absl::StatusOr<std::string> header = ReadPart(source, entry->header, kLocalSize);
    if (!header.ok()) return header.status();
    if (Number(*header, 0, 4) != 0x04034b50) return Broken("a record is missing");
    ZipReader::Record& record = entry->record;
    record.offset = entry->header + kLocalSize + Number(*header, 26, 2) + Number(*header, 28, 2);
    if (record.offset > directory->offset || record.size > directory->offset - record.offset) {
      return Broken("a record is out of bounds");
    }
    extents.emplace_back(entry->header, record.offset + record.size);
    if (!zip.records_.emplace(std::move(entry->name), record).second) {
      return Broken("two records have the same name");
    }
  }
  std::sort(extents.begin(), extents.end());
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].first < extents[i - 1].second) return Broken("two records overlap");
  }
  return zip;
}

const ZipReader::Record* ZipReader::Find(const std::string& name) const {
  const auto found = records_.find(name);
  return found == records_.end() ? nullptr : &found->second;
}

absl::Status ZipReader::Read(const Record& record, void* out) const {
  return ReadPieces(
      record, [out](std::uint64_t done) { return static_cast<char*>(out) + done; },
      [](std::string_view) {});
}

absl::Status ZipReader::Scan(const Record& record,
                             absl::FunctionRef<void(std::string_view)> piece) const {
  std::string buffer(std::min(kPiece, record.size), '\0');
  return ReadPieces(
      record, [&buffer](std::uint64_t) { return buffer.data(); }, piece);
}

absl::Status ZipReader::ReadPieces(const Record& record,
                                   absl::FunctionRef<char*(std::uint64_t)> place,
                                   absl::FunctionRef<void(std::string_view)> piece) const {
  if (!record.plain)
    return absl::InvalidArgumentError("it is compressed, as torch.save never does");
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < record.size;) {
    const std::uint64_t count = std::min(kPiece, record.size - done);
    char* to = place(done);
    if (absl::Status status = source_->Read(record.offset + done, to, count); !status.ok()) {
      return status;
    }
    crc = libdeflate_crc32(crc, to, count);
    piece(std::string_view(to, count));
    done += count;
  }
  // 0 also means that there is none (torch.serialization.set_crc32_options).
  if (crc != record.crc && record.crc != 0) return Broken("a checksum is wrong");
  return absl::OkStatus();
}

namespace {

constexpr std::uint64_t kAlignment = 64;   // of LibTorch's caffe2/serialize/inline_container.h
constexpr std::uint16_t kZipVersion = 45;  // the first with zip64
constexpr std::uint16_t kUtf8Names = 0x0800;
constexpr std::uint16_t kDosDate = 0x21;  // 1 January 1980: equal contents give equal files
constexpr std::uint32_t kInExtra = 0xffffffff;

// Appends little-endian numbers.
class Bytes {
 public:
  template <typename T>
  Bytes& Number(T value) {
    static_assert(std::is_unsigned_v<T>);
    for (std::size_t i = 0; i < sizeof(T); ++i) text_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Bytes& Text(const std::string& text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::Status ZipWriter::Add(const std::string& name, std::string_view data) {
  const Record record = {name, libdeflate_crc32(0, data.data(), data.size()), data.size(),
                         position_};
  constexpr std::uint64_t kHeader = 30, kZip64Extra = 20, kPaddingExtra = 4;
  const std::uint64_t unpadded = position_ + kHeader + name.size() + kZip64Extra + kPaddingExtra;
  const std::uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  Bytes header;
  header.Number(std::uint32_t{0x04034b50})
      .Number(kZipVersion)
      .Number(kUtf8Names)
      .Number(std::uint16_t{0})  // stored
      .Number(std::uint16_t{0})
      .Number(kDosDate)
      .Number(record.crc)
      .Number(kInExtra)
      .Number(kInExtra)
      .Number(static_cast<std::uint16_t>(name.size()))
      .Number(static_cast<std::uint16_t>(kZip64Extra + kPaddingExtra + padding))
      .Text(name)
      .Number(std::uint16_t{1})  // the extra field of zip64
      .Number(std::uint16_t{16})
      .Number(record.size)
      .Number(record.size)
      .Number(std::uint16_t{0x4246})  // "FB", LibTorch's padding
      .Number(static_cast<std::uint16_t>(padding))
      .Text(std::string(padding, 'Z'));
  records_.push_back(record);
  if (absl::Status status = Write(header.text()); !status.ok()) return status;
  return Write(data);
}

absl::Status ZipWriter::Finish() {
  const std::uint64_t start = position_;
  Bytes directory;
  for (const Record& record : records_) {
    directory.Number(std::uint32_t{0x02014b50})
        .Number(kZipVersion)
        .Number(kZipVersion)
        .Number(kUtf8Names)
        .Number(std::uint16_t{0})
        .Number(std::uint16_t{0})
        .Number(kDosDate)
        .Number(record.crc)
        .Number(kInExtra)
        .Number(kInExtra)
        .Number(static_cast<std::uint16_t>(record.name.size()))
        .Number(std::uint16_t{28})
        .Number(std::uint16_t{0})  // no comment
        .Number(std::uint16_t{0})  // disk
        .Number(std::uint16_t{0})
        .Number(std::uint32_t{0})
        .Number(kInExtra)
        .Text(record.name)
        .Number(std::uint16_t{1})
        .Number(std::uint16_t{24})
        .Number(record.size)
        .Number(record.size)
        .Number(record.offset);
  }
  const std::uint64_t count = records_.size();
  const std::uint64_t size = directory.text().size();
  const std::uint64_t end = start + size;
  directory
      .Number(std::uint32_t{0x06064b50})  // the zip64 end of the directory
      .Number(std::uint64_t{44})
      .Number(kZipVersion)
      .Number(kZipVersion)
      .Number(std::uint32_t{0})
      .Number(std::uint32_t{0})
      .Number(count)
      .Number(count)
      .Number(size)
      .Number(start)
      .Number(std::uint32_t{0x07064b50})  // where that is
      .Number(std::uint32_t{0})
      .Number(end)
      .Number(std::uint32_t{1})
      .Number(std::uint32_t{0x06054b50})  // the end of the directory as it was before zip64
      .Number(std::uint16_t{0})
      .Number(std::uint16_t{0})
      .Number(std::uint16_t{0xffff})
      .Number(std::uint16_t{0xffff})
      .Number(kInExtra)
      .Number(kInExtra)
      .Number(std::uint16_t{0});
  return Write(directory.text());
}

absl::Status ZipWriter::Write(std::string_view bytes) {
  position_ += bytes.size();
  return file_.Append(bytes);
}

}  // namespace muster::trainer
