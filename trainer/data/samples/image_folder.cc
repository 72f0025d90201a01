#include "trainer/data/samples/image_folder.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/samples/data_files.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/sample_order.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().native().starts_with('.');
}

bool IsImageName(const fs::path& path) {
  const std::string ending = absl::AsciiStrToLower(path.extension().native());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The names of the folders in `directory`, sorted.
absl::StatusOr<std::vector<std::string>> ListClasses(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsHidden(entry->path()) && IsFolder(entry->path())) {
      names.push_back(entry->path().filename().native());
    }
  }
  if (error) return Unreadable(directory.native(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// The images in `folder` and below, sorted.
absl::StatusOr<std::vector<std::string>> ListImages(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsHidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (IsImageName(entry->path()) && !IsFolder(entry->path())) {
      paths.push_back(entry->path().native());
    }
  }
  if (error) return Unreadable(folder.native(), error.message());
  if (paths.empty()) {
    return Unreadable(folder.native(),
                      "a class without an image; there is no .jpg, .jpeg or .png file in it");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The images of the folders in `directory`; adds the folders' names to `classes`.
absl::StatusOr<std::vector<ImageFile>> ListSplit(const fs::path& directory,
                                                 std::vector<std::string>& classes) {
  const auto folders = ListClasses(directory);
  if (!folders.ok()) return folders.status();
  if (folders->empty()) {
    return Unreadable(directory.native(), "it has no folders, and each class is one");
  }
  std::vector<std::string> names;
  for (const std::string& folder : *folders) names.push_back(ReadableName(folder));
  AddClasses(names, classes);
  const std::map<std::string, std::int64_t> numbers = NumbersOf(classes);
  std::vector<ImageFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    absl::StatusOr<std::vector<std::string>> paths = ListImages(directory / (*folders)[i]);
    if (!paths.ok()) return paths.status();
    for (std::string& path : *paths) files.push_back({std::move(path), numbers.at(names[i])});
  }
  return files;
}

// kInvalidArgument if a required class of `directory` is unknown.
absl::Status CheckKnown(const DataOptions& options, const std::string& directory,
                        const std::vector<std::string>& classes) {
  const std::string unknown = UnknownClass(options.known.classes, classes);
  if (options.known.classes.empty() || !options.labels_needed || unknown.empty()) {
    return absl::OkStatus();
  }
  return Unreadable(directory, absl::StrCat(unknown, "; leave its folder out"));
}

// Where the test classes are; empty: nowhere.
fs::path TestFolder(const fs::path& directory, const std::string& test_directory) {
  if (!test_directory.empty()) return test_directory;
  if (!IsFolder(directory / "train")) return {};
  for (const char* name : {"val", "test"}) {
    if (IsFolder(directory / name)) return directory / name;
  }
  return {};
}

}  // namespace

absl::StatusOr<ImageFolder> ListImageFolder(const DataOptions& options) {
  const fs::path root(options.paths.front());
  if (!IsFolder(root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("read data from ", options.paths.front(), ": no such directory"));
  }
  const fs::path train = IsFolder(root / "train") ? root / "train" : root;
  const bool known = !options.known.classes.empty();
  if (const auto found = ListClasses(train); !found.ok()) {
    return found.status();
  } else if (!known && found->size() < 2) {
    return Unreadable(train.native(),
                      absl::StrCat("it has ", found->empty() ? "no folders" : "one folder",
                                   ", and a folder for each of two or more classes is needed"));
  }
  ImageFolder folder{.classes = options.known.classes, .train = {}, .test = {}};
  absl::StatusOr<std::vector<ImageFile>> files = ListSplit(train, folder.classes);
  if (!files.ok()) return files.status();
  absl::Status checked = CheckKnown(options, train.native(), folder.classes);
  if (!checked.ok()) return checked;
  if (const fs::path apart = TestFolder(root, options.test_path()); !apart.empty()) {
    folder.train = *std::move(files);
    const std::size_t of_train = folder.classes.size();
    files = ListSplit(apart, folder.classes);
    if (!files.ok()) return files.status();
    if (!known && folder.classes.size() > of_train) {
      return Unreadable((apart / folder.classes[of_train]).native(),
                        "a class that the images to train on do not have");
    }
    checked = CheckKnown(options, apart.native(), folder.classes);
    if (!checked.ok()) return checked;
    folder.test = *std::move(files);
    return folder;
  }
  if (options.undivided) {
    folder.train = *std::move(files);
    return folder;
  }
  const std::vector<bool> held_out =
      HoldOut(static_cast<std::int64_t>(files->size()), options.test_share, options.seed);
  for (std::size_t i = 0; i < files->size(); ++i) {
    (held_out[i] ? folder.test : folder.train).push_back(std::move((*files)[i]));
  }
  return folder;
}

absl::StatusOr<RgbImage> ReadImage(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const std::uint8_t* bytes = (*file)->bytes();
  const std::int64_t size = (*file)->size();
  absl::StatusOr<RgbImage> image = absl::InvalidArgumentError("neither a JPEG nor a PNG file");
  if (LooksLikeJpeg(bytes, size)) {
    image = DecodeJpeg(bytes, size);
  } else if (LooksLikePng(bytes, size)) {
    image = DecodePng(bytes, size);
  }
  return image.ok() ? std::move(image) : Unreadable(path, image.status().message());
}

namespace {

struct JpegDestroyer {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using JpegDecoder = std::unique_ptr<std::remove_pointer_t<tjhandle>, JpegDestroyer>;

absl::Status JpegFailure(tjhandle handle) {
  return absl::InvalidArgumentError(absl::StrCat("truncated or damaged: ", tjGetErrorStr2(handle)));
}

// Whether libjpeg's warning is about stray bytes in a file that is complete. Compressed data never
// contains an end marker, so one after the last start of scan is the image's own, not that of an
// embedded thumbnail.
bool OnlyStrayBytes(tjhandle handle, const std::uint8_t* bytes, std::int64_t size) {
  if (tjGetErrorCode(handle) != TJERR_WARNING) return false;
  if (!absl::StrContains(tjGetErrorStr2(handle), "extraneous bytes before marker")) return false;
  const std::string_view file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  const std::size_t scan = file.rfind("\xff\xda");
  return scan != std::string_view::npos && file.find("\xff\xd9", scan) != std::string_view::npos;
}

// Converts inverted cyan, magenta, yellow and black to red, green and blue, as Pillow does.
void RgbOfCmyk(const std::vector<std::uint8_t>& cmyk, std::vector<std::uint8_t>* rgb) {
  for (std::size_t i = 0; i < cmyk.size() / 4; ++i) {
    const unsigned black = cmyk[4 * i + 3];
    for (std::size_t channel = 0; channel < 3; ++channel) {
      (*rgb)[3 * i + channel] =
          static_cast<std::uint8_t>((cmyk[4 * i + channel] * black + 127) / 255);
    }
  }
}

}  // namespace

bool LooksLikeJpeg(const std::uint8_t* bytes, std::int64_t size) {
  return size >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

absl::StatusOr<RgbImage> DecodeJpeg(const std::uint8_t* bytes, std::int64_t size) {
  // A new one per image: after a damaged header, version 2.1 continues in the middle of it with the
  // next image. Creating one takes microseconds.
  const JpegDecoder owner(tjInitDecompress());
  tjhandle decoder = owner.get();
  if (decoder == nullptr) throw std::bad_alloc();
  const auto length = static_cast<unsigned long>(size);
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colors = 0;
  if (tjDecompressHeader3(decoder, bytes, length, &width, &height, &subsampling, &colors) != 0 &&
      tjGetErrorCode(decoder) != TJERR_WARNING) {
    return JpegFailure(decoder);
  }
  // A file with only tables is valid to libjpeg.
  if (width < 1 || height < 1) {
    return absl::InvalidArgumentError("truncated or damaged: it ends before its image");
  }
  const absl::Status fits = CheckImageSize(height, width);
  if (!fits.ok()) return fits;

  const bool inks = colors == TJCS_CMYK || colors == TJCS_YCCK;
  const std::size_t count = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  RgbImage image{.height = height, .width = width, .pixels = {}};
  image.pixels.resize(3 * count);
  std::vector<std::uint8_t> cmyk(inks ? 4 * count : 0);
  // A small file can contain thousands of scans, each of which passes over the whole image.
  const int decoded =
      tjDecompress2(decoder, bytes, length, inks ? cmyk.data() : image.pixels.data(), width,
                    /*pitch=*/0, height, inks ? TJPF_CMYK : TJPF_RGB, TJFLAG_LIMITSCANS);
  if (decoded != 0 && !OnlyStrayBytes(decoder, bytes, size)) return JpegFailure(decoder);
  if (inks) RgbOfCmyk(cmyk, &image.pixels);
  return image;
}

namespace {

constexpr std::uint8_t kPngSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

// libpng's description of an image; frees its memory.
class PngReader {
 public:
  PngReader() {
    std::memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
  }
  ~PngReader() { png_image_free(&image); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  absl::Status Failure() const {
    return absl::InvalidArgumentError(absl::StrCat("truncated or damaged: ", image.message));
  }

  png_image image;
};

}  // namespace

bool LooksLikePng(const std::uint8_t* bytes, std::int64_t size) {
  return size >= static_cast<std::int64_t>(sizeof kPngSignature) &&
         std::memcmp(bytes, kPngSignature, sizeof kPngSignature) == 0;
}

absl::StatusOr<RgbImage> DecodePng(const std::uint8_t* bytes, std::int64_t size) {
  PngReader reader;
  png_image& png = reader.image;
  if (png_image_begin_read_from_memory(&png, bytes, static_cast<std::size_t>(size)) == 0) {
    return reader.Failure();
  }
  const absl::Status fits = CheckImageSize(png.height, png.width);
  if (!fits.ok()) return fits;
  // Otherwise 16 bits without a gamma are assumed to be linear, which is rare.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const std::size_t count = std::size_t{png.height} * png.width;
  // If transparency is requested, colors are as in the file; otherwise libpng would blend them with
  // a background.
  const bool transparent = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  png.format = transparent ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  RgbImage image{.height = png.height, .width = png.width, .pixels = {}};
  image.pixels.resize((transparent ? 4 : 3) * count);
  if (png_image_finish_read(&png, /*background=*/nullptr, image.pixels.data(), /*row_stride=*/0,
                            /*colormap=*/nullptr) == 0) {
    return reader.Failure();
  }
  if (transparent) {
    for (std::size_t i = 1; i < count; ++i) {
      std::memmove(&image.pixels[3 * i], &image.pixels[4 * i], 3);
    }
    image.pixels.resize(3 * count);
  }
  return image;
}

}  // namespace muster::trainer
