#include "trainer/data/datasets/idx_images.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/datasets/idx.h"

namespace muster::trainer {
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

}  // namespace muster::trainer
