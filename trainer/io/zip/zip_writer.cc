#include "trainer/io/zip/zip_writer.h"

#include <libdeflate.h>

#include <type_traits>

namespace muster::trainer {
namespace {

constexpr std::uint64_t kAlignment = 64;  // of LibTorch's caffe2/serialize/inline_container.h
constexpr std::uint16_t kVersion = 45;    // the first with zip64
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
      .Number(kVersion)
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
        .Number(kVersion)
        .Number(kVersion)
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
      .Number(kVersion)
      .Number(kVersion)
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
