// Finds the images of a folder, and the class of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/image_samples.h"

namespace muster::trainer {

// A path, and its class as an index into the class names.
struct ImageFile {
  std::string path;
  std::int64_t label = 0;
};

struct ImageFolder {
  // Sorted by bytes, at least two; or the known ones, followed by the unknown ones. As
  // ReadableName.
  std::vector<std::string> classes;
  // Sorted by class folder, then by path. `test` is empty if there is no test split: then all
  // images are in `train`, which is never empty.
  std::vector<ImageFile> train;
  std::vector<ImageFile> test;
};

// Lists the directory that is the one of `options.paths`, laid out as for torchvision's
// ImageFolder: train/CLASS/... for training and val/CLASS/... (or else test/CLASS/...) for testing.
// If `test_path()` is not empty, it contains the test's classes. Without a test split, or
// without train/ (then the classes are in the directory itself), `test_share` of all images, at
// least one, is held out; which ones depends only on their number and on `seed`. Not if
// `undivided`.
//
// A class is a folder; its images are the files in it and in folders below, at any depth, whose
// names end with .jpg, .jpeg or .png in lower or upper case. Names that begin with a dot are
// skipped. No file is opened. The same files give the same result everywhere. Known classes keep
// their numbers from the training, even if only some occur.
//
// kInvalidArgument and one sentence if a directory cannot be read, there are fewer than two
// classes, a class has no image, the test has a class that the training lacks, or a required class
// is unknown.
absl::StatusOr<ImageFolder> ListImageFolder(const DataOptions& options);

// Reads an image from a file.

// Reads and decodes the JPEG or PNG file at `path` (DecodeJpeg, DecodePng); the first bytes, not
// the name, determine which. kInvalidArgument and one sentence that names the file when it cannot
// be read or is not a whole image. Throws std::bad_alloc. Any thread.
absl::StatusOr<RgbImage> ReadImage(const std::string& path);

// Decodes JPEG with libjpeg-turbo's TurboJPEG API, which returns errors; libjpeg's own API uses
// longjmp out of C++ functions.

// Whether the `size` bytes begin like a JPEG file.
bool LooksLikeJpeg(const std::uint8_t* bytes, std::int64_t size);

// Decodes the JPEG file that is `bytes`. Grey and CMYK become RGB; CMYK is assumed to be inverted,
// as Adobe's programs write it and Pillow reads it. Color profiles and EXIF's orientation are
// ignored, as torchvision does. kInvalidArgument and why, a part of a sentence ("truncated or
// damaged: ..."), if the file is incomplete, is not a JPEG, or is larger than CheckImageSize()
// allows. A file whose only fault is stray bytes between two parts (ImageNet has some) is decoded.
// Any thread.
absl::StatusOr<RgbImage> DecodeJpeg(const std::uint8_t* bytes, std::int64_t size);

// Decodes PNG with libpng's simplified API, which returns errors; the other one uses longjmp out of
// C++ functions.

// Whether the `size` bytes begin like a PNG file.
bool LooksLikePng(const std::uint8_t* bytes, std::int64_t size);

// Decodes the PNG file that is `bytes`. Grey and palettes become RGB, 16 bits become 8, and
// transparency is dropped without mixing in a background, as torchvision does. A file with its own
// gamma (gAMA) is converted to sRGB's; otherwise values are unchanged. kInvalidArgument and why, a
// part of a sentence ("truncated or damaged: ..."), when rows are missing, a checksum is wrong, it
// is not a PNG, or it is larger than CheckImageSize() allows. Any thread.
absl::StatusOr<RgbImage> DecodePng(const std::uint8_t* bytes, std::int64_t size);

}  // namespace muster::trainer
