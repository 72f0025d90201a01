#include "trainer/data/image_set.h"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/generated.h"
#include "trainer/data/idx.h"

namespace muster::trainer {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::uint8_t kClasses = 10;
constexpr std::int64_t kGeneratedTrain = 2050;
constexpr std::int64_t kGeneratedTest = 500;

// Of the 60,000 training images of Fashion-MNIST, with pixels in [0, 1].
constexpr double kMean = 0.2860;
constexpr double kDeviation = 0.3530;

ImageSet FromBytes(const std::vector<std::uint8_t>& pixels,
                   const std::vector<std::uint8_t>& labels) {
  // from_blob only borrows, hence the copies; it asks for a pointer to non-const, and does not
  // write.
  const auto borrow = [](const std::vector<std::uint8_t>& bytes) {
    return torch::from_blob(const_cast<std::uint8_t*>(bytes.data()),
                            {static_cast<std::int64_t>(bytes.size())}, torch::kByte);
  };
  return ImageSet(borrow(pixels).clone().view({-1, 1, kSide, kSide}),
                  borrow(labels).to(torch::kLong));
}

absl::StatusOr<ImageSet> LoadSplit(const std::string& dir, const std::string& split) {
  const std::string images_name = split + "-images-idx3-ubyte";
  const std::string labels_name = split + "-labels-idx1-ubyte";
  const absl::StatusOr<IdxArray> images = ReadIdxFrom(dir, images_name);
  if (!images.ok()) return images.status();
  const absl::StatusOr<IdxArray> labels = ReadIdxFrom(dir, labels_name);
  if (!labels.ok()) return labels.status();

  const std::vector<std::int64_t>& dims = images->dims;
  if (dims.size() != 3 || dims[0] < 1 || dims[1] != kSide || dims[2] != kSide) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": ", images_name,
                                                   " does not hold images of 28 x 28 pixels"));
  }
  if (labels->dims.size() != 1 || labels->dims[0] != dims[0]) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": ", labels_name,
                                                   " does not hold one label for each of the ",
                                                   dims[0], " images"));
  }
  const std::uint8_t highest = *std::max_element(labels->bytes.begin(), labels->bytes.end());
  if (highest >= kClasses) {
    return absl::InvalidArgumentError(absl::StrCat("read data from ", dir, ": ", labels_name,
                                                   " has label ", int{highest}, ", above 9"));
  }
  return FromBytes(images->bytes, labels->bytes);
}

}  // namespace

ImageSet::ImageSet(at::Tensor images, at::Tensor labels)
    : images_(std::move(images)), labels_(std::move(labels)) {}

std::int64_t ImageSet::size() const {
  return images_.size(0);
}

ImageSet::Batch ImageSet::Gather(const std::vector<std::int64_t>& indices) const {
  const at::Tensor index = torch::tensor(indices, torch::kLong);
  const at::Tensor bytes = images_.index_select(0, index);
  return {bytes.to(torch::kFloat).div_(255).sub_(kMean).div_(kDeviation),
          labels_.index_select(0, index)};
}

absl::StatusOr<TrainAndTest> LoadIdxImages(const std::string& dir) {
  absl::StatusOr<ImageSet> train = LoadSplit(dir, "train");
  if (!train.ok()) return train.status();
  absl::StatusOr<ImageSet> test = LoadSplit(dir, "t10k");
  if (!test.ok()) return test.status();
  return TrainAndTest{*std::move(train), *std::move(test)};
}

TrainAndTest MakeGeneratedImages() {
  const GeneratedImages train = GenerateImages(kGeneratedTrain, /*seed=*/1);
  const GeneratedImages test = GenerateImages(kGeneratedTest, /*seed=*/2);
  return {FromBytes(train.pixels, train.labels), FromBytes(test.pixels, test.labels)};
}

}  // namespace muster::trainer
