#include "trainer/data/datasets/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

#include "trainer/data/datasets/unreadable.h"

namespace muster::trainer {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr int kMaxDims = 4;
constexpr std::int64_t kMaxIdxBytes = std::int64_t{4} << 30;
// How much is read at a time, so that a header that promises much does not make us allocate it
// before it is there.
constexpr std::int64_t kChunk = std::int64_t{16} << 20;

// An open file; zlib's reader passes files that are not gzipped through as they are.
using GzFile = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

// Reads up to `size` bytes to `to`; fewer only at the end of the data. An error of the stream (a
// gzip file that was cut short, a checksum that does not match) is left in `error`.
std::int64_t ReadSome(gzFile file, void* to, std::int64_t size, std::string* error) {
  const int got = gzread(file, to, static_cast<unsigned>(size));
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  if (code == Z_ERRNO) {
    *error = base::SystemCause();
  } else if (code == Z_BUF_ERROR) {
    *error = "the gzip data is cut short";
  } else if (code != Z_OK && code != Z_STREAM_END) {
    *error = message;
  }
  return std::max(got, 0);
}

}  // namespace

absl::StatusOr<IdxArray> ReadIdx(const std::string& path) {
  // gzopen opens a directory too, and then reads nothing from it.
  if (std::filesystem::is_directory(path)) return Unreadable(path, "is a directory");
  errno = 0;
  const GzFile file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file)
    return Unreadable(path, errno != 0 ? base::SystemCause() : std::string("out of memory"));
  std::string error;

  std::array<std::uint8_t, 4> magic{};
  if (ReadSome(file.get(), magic.data(), 4, &error) != 4) {
    return Unreadable(path, error.empty() ? "too short for an IDX header" : error);
  }
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] < 1 ||
      magic[3] > kMaxDims) {
    return Unreadable(path, absl::StrCat("not an IDX file of unsigned bytes (starts with ",
                                         absl::Hex(magic[0], absl::kZeroPad2), " ",
                                         absl::Hex(magic[1], absl::kZeroPad2), " ",
                                         absl::Hex(magic[2], absl::kZeroPad2), " ",
                                         absl::Hex(magic[3], absl::kZeroPad2), ")"));
  }

  IdxArray array;
  std::int64_t size = 1;
  for (int i = 0; i < magic[3]; ++i) {
    std::array<std::uint8_t, 4> big_endian{};
    if (ReadSome(file.get(), big_endian.data(), 4, &error) != 4) {
      return Unreadable(path, error.empty() ? "too short for its IDX header" : error);
    }
    std::int64_t dim = 0;
    for (const std::uint8_t byte : big_endian) dim = dim << 8 | byte;
    if (dim > 0 && size > kMaxIdxBytes / dim)
      return Unreadable(path, "its header promises more than 4 GiB");
    size *= dim;
    array.dims.push_back(dim);
  }

  while (static_cast<std::int64_t>(array.bytes.size()) < size) {
    const auto have = static_cast<std::int64_t>(array.bytes.size());
    const std::int64_t want = std::min(kChunk, size - have);
    array.bytes.resize(static_cast<std::size_t>(have + want));
    const std::int64_t got = ReadSome(file.get(), array.bytes.data() + have, want, &error);
    if (got != want) {
      return Unreadable(path, error.empty()
                                  ? absl::StrCat("truncated: it has ", have + got, " of the ", size,
                                                 " bytes its header promises")
                                  : error);
    }
  }
  std::uint8_t more = 0;
  if (ReadSome(file.get(), &more, 1, &error) != 0) {
    return Unreadable(path, absl::StrCat("longer than the ", size, " bytes its header promises"));
  }
  if (!error.empty()) return Unreadable(path, error);
  return array;
}

absl::StatusOr<IdxArray> ReadIdxFrom(const std::string& dir, const std::string& name) {
  const std::filesystem::path plain = std::filesystem::path(dir) / name;
  std::error_code ignored;
  if (std::filesystem::exists(plain, ignored)) return ReadIdx(plain.string());
  const std::filesystem::path zipped = plain.string() + ".gz";
  if (std::filesystem::exists(zipped, ignored)) return ReadIdx(zipped.string());
  if (!std::filesystem::is_directory(dir, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": no such directory"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("read data from ", dir, ": it has neither ", name, " nor ", name, ".gz"));
}

}  // namespace muster::trainer
