#include "trainer/data/samples/image_sets.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "base/failure.h"
#include "trainer/data/samples/data_files.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kCifarSide = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kPixels = kChannels * kCifarSide * kCifarSide;
constexpr std::int64_t kRecord = 1 + kPixels;
constexpr std::int64_t kMaxCifarBytes = std::int64_t{1} << 30;
constexpr int kCifarClasses = 10;

absl::Status Append(const std::filesystem::path& path, LabelledImages* images) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Unreadable(path.string(), std::filesystem::exists(path, error)
                                         ? "not a file"
                                         : "no such file, and CIFAR-10's binary form has it");
  }
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) return Unreadable(path.string(), error.message());
  if (size == 0 || size % kRecord != 0 || size > kMaxCifarBytes) {
    return Unreadable(path.string(), absl::StrCat("not CIFAR-10's binary form: ", size,
                                                  " bytes are not records of ", kRecord, " bytes"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const std::int64_t records = size / kRecord;
  for (std::int64_t i = 0; i < records; ++i) {
    const int label = file.get();
    const std::size_t have = images->pixels.size();
    images->pixels.resize(have + kPixels);
    if (!file.read(reinterpret_cast<char*>(images->pixels.data() + have), kPixels)) {
      return Unreadable(path.string(),
                        errno != 0 ? base::SystemCause() : std::string("it became shorter"));
    }
    if (label >= kCifarClasses) {
      return Unreadable(path.string(), absl::StrCat("not CIFAR-10's binary form: record ", i,
                                                    " has label ", label, ", above 9"));
    }
    images->labels.push_back(static_cast<std::uint8_t>(label));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CifarImages> ReadCifar10(const std::string& dir) {
  std::filesystem::path folder(dir);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": no such directory"));
  }
  // The directory in the published archive.
  if (std::filesystem::is_directory(folder / "cifar-10-batches-bin", ignored)) {
    folder /= "cifar-10-batches-bin";
  }
  CifarImages images;
  for (LabelledImages* split : {&images.train, &images.test}) {
    split->channels = kChannels;
    split->height = kCifarSide;
    split->width = kCifarSide;
    split->classes = kCifarClasses;
  }
  for (int i = 1; i <= 5; ++i) {
    const absl::Status read =
        Append(folder / absl::StrCat("data_batch_", i, ".bin"), &images.train);
    if (!read.ok()) return read;
  }
  const absl::Status read = Append(folder / "test_batch.bin", &images.test);
  if (!read.ok()) return read;
  return images;
}

namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr int kMaxDims = 4;
constexpr std::int64_t kMaxIdxBytes = std::int64_t{4} << 30;
// The read size: limits the memory for a header that claims much more than the file contains.
constexpr std::int64_t kChunk = std::int64_t{16} << 20;

// An open file; zlib's reader also reads files that are not gzipped.
using GzFile = std::unique_ptr<gzFile_s, int (*)(gzFile)>;

// Reads up to `size` bytes to `to`; fewer only at the end of the data. Sets `error` for a stream
// error (a truncated gzip file, a checksum that does not match).
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
  // gzopen also opens a directory, and then reads nothing from it.
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

namespace {

constexpr std::int64_t kMnistSide = 28;
constexpr std::uint8_t kMnistClasses = 10;

}  // namespace

absl::StatusOr<LabelledImages> ReadIdxImages(const std::string& dir, const std::string& split) {
  const std::string images_name = split + "-images-idx3-ubyte";
  const std::string labels_name = split + "-labels-idx1-ubyte";
  absl::StatusOr<IdxArray> images = ReadIdxFrom(dir, images_name);
  if (!images.ok()) return images.status();
  absl::StatusOr<IdxArray> labels = ReadIdxFrom(dir, labels_name);
  if (!labels.ok()) return labels.status();

  const std::vector<std::int64_t>& dims = images->dims;
  if (dims.size() != 3 || dims[0] < 1 || dims[1] != kMnistSide || dims[2] != kMnistSide) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": ", images_name,
                                                   " does not hold images of 28 x 28 pixels"));
  }
  if (labels->dims.size() != 1 || labels->dims[0] != dims[0]) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": ", labels_name,
                                                   " does not hold one label for each of the ",
                                                   dims[0], " images"));
  }
  const std::uint8_t highest = *std::max_element(labels->bytes.begin(), labels->bytes.end());
  if (highest >= kMnistClasses) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": ", labels_name,
                                                   " has label ", int{highest}, ", above 9"));
  }
  return LabelledImages{.height = kMnistSide,
                        .width = kMnistSide,
                        .classes = kMnistClasses,
                        .pixels = std::move(images->bytes),
                        .labels = std::move(labels->bytes)};
}

namespace {

constexpr int kSide = 28;
constexpr int kClasses = 10;
// A class is a pattern of 4 x 4 blocks of 8 pixels: 32 wide, which leaves room for shifts of up to
// 4 pixels.
constexpr int kBlocks = 4;
constexpr int kBlockSide = 8;
constexpr int kMaxShift = kBlocks * kBlockSide - kSide;

using Pattern = std::array<std::uint8_t, kBlocks * kBlocks>;

// The patterns do not depend on the seed: training and test images share their classes.
std::array<Pattern, kClasses> Patterns() {
  std::mt19937_64 random(10);
  std::array<Pattern, kClasses> patterns{};
  for (Pattern& pattern : patterns) {
    for (std::uint8_t& level : pattern) level = random() % 2 == 0 ? 40 : 200;
  }
  return patterns;
}

}  // namespace

LabelledImages GenerateImageSet(std::int64_t count, std::uint64_t seed) {
  const std::array<Pattern, kClasses> patterns = Patterns();
  // Uses only the generator's own bits: standard distributions differ between libraries.
  std::mt19937_64 random(seed);
  LabelledImages images{.height = kSide, .width = kSide, .classes = kClasses};
  images.pixels.reserve(static_cast<std::size_t>(count) * kSide * kSide);
  images.labels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(random() % kClasses);
    const int down = static_cast<int>(random() % (kMaxShift + 1));
    const int right = static_cast<int>(random() % (kMaxShift + 1));
    images.labels.push_back(label);
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const int block = (y + down) / kBlockSide * kBlocks + (x + right) / kBlockSide;
        const int noise = static_cast<int>(random() % 81) - 40;
        const int level = patterns[label][static_cast<std::size_t>(block)] + noise;
        images.pixels.push_back(static_cast<std::uint8_t>(std::clamp(level, 0, 255)));
      }
    }
  }
  return images;
}

}  // namespace muster::trainer
