#include "trainer/data/datasets/cifar.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

#include "trainer/data/datasets/unreadable.h"

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
  // What the published archive unpacks to.
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

}  // namespace muster::trainer
