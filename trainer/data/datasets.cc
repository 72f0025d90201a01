#include "trainer/data/datasets.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/samples/image_folder.h"
#include "trainer/data/samples/image_samples.h"
#include "trainer/data/samples/image_sets.h"
#include "trainer/data/samples/token_files.h"

namespace muster::trainer {
namespace {

// Not divisible by typical batch sizes or numbers of ranks.
constexpr std::int64_t kGeneratedTrain = 2050;
constexpr std::int64_t kGeneratedTest = 500;

// Images of the same shape, normalized as in options.known, else as the training images.
absl::StatusOr<Splits> ImageSplits(LabelledImages train, LabelledImages test,
                                   const DataOptions& options) {
  const absl::Status fits = CheckChannels(options.known.normalization, train.channels);
  if (!fits.ok()) return fits;
  const auto learn = std::make_shared<const LabelledImages>(std::move(train));
  const auto measure = std::make_shared<const LabelledImages>(std::move(test));
  const Normalization& known = options.known.normalization;
  const Normalization norm = known.empty() ? MeasureNormalization(*learn) : known;
  return Splits{std::make_shared<ImageDataset>(learn, norm, options.augmentation),
                std::make_shared<ImageDataset>(measure, norm, AugmentationOptions{}),
                {.normalization = norm}};
}

absl::StatusOr<Splits> OpenSplits(TokenSource source, const DataOptions& options) {
  absl::StatusOr<TokenSplits> splits = OpenTokenSplits(source, options);
  if (!splits.ok()) return splits.status();
  return Splits{std::make_shared<TextDataset>(std::move(splits->train)),
                std::make_shared<TextDataset>(std::move(splits->test))};
}

absl::Status CheckCropPadding(const AugmentationOptions& options) {
  // More than any image's side would be all black.
  constexpr int kMaxPadding = 64;
  if (options.crop_padding >= 0 && options.crop_padding <= kMaxPadding) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a crop padding of ", options.crop_padding,
                                                 " pixels: it must be from 0 to ", kMaxPadding));
}

// Images come from a single directory.
absl::Status CheckImageOptions(const DataOptions& options) {
  const absl::Status padding = CheckCropPadding(options.augmentation);
  if (!padding.ok()) return padding;
  if (options.paths.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--data names ", options.paths.size(), " paths, and images are read from one directory"));
  }
  const std::string& path = options.paths.front();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("read data from ", path,
                   ": it is a file, and images are read from a directory; text is what --model gpt "
                   "learns from"));
}

// kInvalidArgument if --test-data names several paths.
absl::Status CheckTestPath(const DataOptions& options, const char* what) {
  if (options.test_paths.size() <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--test-data names ", options.test_paths.size(), " paths, and ", what));
}

}  // namespace

absl::StatusOr<Splits> OpenIdx(const DataOptions& options) {
  const absl::Status checked = CheckImageOptions(options);
  if (!checked.ok()) return checked;
  absl::StatusOr<LabelledImages> train = ReadIdxImages(options.paths.front(), "train");
  if (!train.ok()) return train.status();
  absl::StatusOr<LabelledImages> test = ReadIdxImages(options.paths.front(), "t10k");
  if (!test.ok()) return test.status();
  return ImageSplits(*std::move(train), *std::move(test), options);
}

absl::StatusOr<Splits> OpenCifar10(const DataOptions& options) {
  const absl::Status checked = CheckImageOptions(options);
  if (!checked.ok()) return checked;
  absl::StatusOr<CifarImages> images = ReadCifar10(options.paths.front());
  if (!images.ok()) return images.status();
  return ImageSplits(std::move(images->train), std::move(images->test), options);
}

absl::StatusOr<Splits> OpenFolder(const DataOptions& options) {
  const absl::Status checked = CheckImageOptions(options);
  if (!checked.ok()) return checked;
  const absl::Status test = CheckTestPath(options, "images are read from one directory");
  if (!test.ok()) return test;
  constexpr std::int64_t kLargestSide = 4096;
  if (options.image_size < 1 || options.image_size > kLargestSide) {
    return absl::InvalidArgumentError(absl::StrCat("an image size of ", options.image_size,
                                                   " pixels: it must be from 1 to ", kLargestSide));
  }
  const absl::Status fits = CheckChannels(options.known.normalization, FolderDataset::kChannels);
  if (!fits.ok()) return fits;
  auto folder = ListImageFolder(options);
  if (!folder.ok()) return folder.status();
  const std::vector<std::string>& known = options.known.classes;
  const auto classes =
      static_cast<std::int64_t>(known.empty() ? folder->classes.size() : known.size());
  const Normalization norm =
      options.known.normalization.empty()
          ? Normalization{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}}
          : options.known.normalization;
  const auto images =
      [&](std::vector<ImageFile> files,
          const AugmentationOptions& augmentation) -> std::shared_ptr<const Dataset> {
    return std::make_shared<FolderDataset>(std::move(files), classes, options.image_size, norm,
                                           augmentation);
  };
  const bool divided = !folder->test.empty();
  Splits splits{.train = images(std::move(folder->train), options.augmentation),
                .facts = {.normalization = norm, .classes = std::move(folder->classes)}};
  splits.test = divided ? images(std::move(folder->test), AugmentationOptions{}) : splits.train;
  return splits;
}

absl::StatusOr<Splits> OpenTable(const DataOptions& options) {
  constexpr char kOneFile[] = "a table is read from one CSV file";
  if (options.paths.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data names ", options.paths.size(), " paths, and ", kOneFile));
  }
  const absl::Status test = CheckTestPath(options, kOneFile);
  if (!test.ok()) return test;
  auto table = ReadTable(options);
  if (!table.ok()) return table.status();
  const auto columns = static_cast<std::int64_t>(table->facts.columns.size());
  const std::vector<std::string>& names =
      options.known.classes.empty() ? table->facts.classes : options.known.classes;
  const auto classes = static_cast<std::int64_t>(names.size());
  const auto rows = [&](TableRows split) -> std::shared_ptr<const Dataset> {
    return std::make_shared<TableDataset>(std::move(split), columns, classes);
  };
  const bool divided = table->test.count() > 0;
  Splits splits{.train = rows(std::move(table->train)), .facts = std::move(table->facts)};
  splits.test = divided ? rows(std::move(table->test)) : splits.train;
  return splits;
}

absl::StatusOr<Splits> OpenGeneratedImages(const DataOptions& options) {
  const absl::Status checked = CheckCropPadding(options.augmentation);
  if (!checked.ok()) return checked;
  return ImageSplits(GenerateImageSet(kGeneratedTrain, /*seed=*/1),
                     GenerateImageSet(kGeneratedTest, /*seed=*/2), options);
}

absl::StatusOr<Splits> OpenText(const DataOptions& options) {
  return OpenSplits(TokenSource::kText, options);
}

absl::StatusOr<Splits> OpenTokens(const DataOptions& options) {
  return OpenSplits(TokenSource::kTokens, options);
}

absl::StatusOr<Splits> OpenGeneratedText(const DataOptions& options) {
  return OpenSplits(TokenSource::kGenerated, options);
}

absl::Status CheckChannels(const Normalization& known, std::int64_t channels) {
  const auto trained = static_cast<std::int64_t>(known.mean.size());
  if (known.empty() || trained == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model was trained on data with ", trained, trained == 1 ? " channel" : " channels",
      ", and these images have ", channels, ": give it data of the same kind"));
}

absl::StatusOr<Splits> OpenData(const DataRecipe& recipe, const DataOptions& options) {
  absl::StatusOr<Splits> splits = recipe.open(options);
  if (!splits.ok()) return splits;
  const std::pair<const Dataset*, const char*> both[] = {{splits->train.get(), "training"},
                                                         {splits->test.get(), "test"}};
  for (const auto& [data, use] : both) {
    const auto bad = [&, name = use](const char* why) {
      return absl::InvalidArgumentError(
          absl::StrCat("open data set ", recipe.name, ": ", name, " data ", why));
    };
    if (data == nullptr) return bad("is missing (a null pointer in Splits)");
    if (data->size() < 1) return bad("has no samples");
  }
  return splits;
}

namespace {

// Throws std::out_of_range unless `index` is one of `size` samples, each of which is called `what`.
void CheckIndex(std::int64_t index, std::int64_t size, const char* what) {
  if (index >= 0 && index < size) return;
  throw std::out_of_range(absl::StrCat("no ", what, " ", index, " among ", size));
}

}  // namespace

ImageDataset::ImageDataset(std::shared_ptr<const LabelledImages> images, const Normalization& norm,
                           const AugmentationOptions& augmentation)
    : images_(std::move(images)), table_(MakeNormalizedPixels(norm)), augmentation_(augmentation) {}

std::int64_t ImageDataset::size() const {
  return images_->count();
}

DataShape ImageDataset::shape() const {
  return {.kind = DataShape::Kind::kImages,
          .channels = images_->channels,
          .height = images_->height,
          .width = images_->width,
          .classes = images_->classes};
}

Batch ImageDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                           bool train) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, images_->channels, images_->height, images_->width}, at::kFloat),
              at::empty({count}, at::kLong)};
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  const std::int64_t image_size = images_->channels * images_->height * images_->width;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t index = indices[i];
    CheckIndex(index, size(), "image");
    if (i + 1 < indices.size() && indices[i + 1] >= 0 && indices[i + 1] < size()) {
      PrefetchImage(*images_, indices[i + 1]);
    }
    const ImageVariation variation =
        train ? VariationOf(augmentation_, epoch, index) : ImageVariation{};
    GatherImage(*images_, table_, index, variation, pixels);
    *labels++ = images_->labels[static_cast<std::size_t>(index)];
    pixels += image_size;
  }
  return batch;
}

FolderDataset::FolderDataset(std::vector<ImageFile> files, std::int64_t classes, std::int64_t side,
                             const Normalization& norm, const AugmentationOptions& augmentation)
    : files_(std::move(files)),
      classes_(classes),
      side_(side),
      table_(MakeNormalizedPixels(norm)),
      augmentation_(augmentation) {}

DataShape FolderDataset::shape() const {
  return {.kind = DataShape::Kind::kImages,
          .channels = kChannels,
          .height = side_,
          .width = side_,
          .classes = classes_};
}

Batch FolderDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                            bool train) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, kChannels, side_, side_}, at::kFloat),
              at::empty({count}, at::kLong)};
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  LabelledImages one{.channels = kChannels, .height = side_, .width = side_, .classes = classes_};
  for (const std::int64_t index : indices) {
    CheckIndex(index, size(), "image");
    const ImageFile& file = files_[static_cast<std::size_t>(index)];
    const absl::StatusOr<RgbImage> image = ReadImage(file.path);
    if (!image.ok()) throw std::invalid_argument(std::string(image.status().message()));
    one.pixels = ResizedSquare(*image, side_);
    const ImageVariation variation =
        train ? VariationOf(augmentation_, epoch, index) : ImageVariation{};
    GatherImage(one, table_, /*index=*/0, variation, pixels);
    *labels++ = file.label;
    pixels += kChannels * side_ * side_;
  }
  return batch;
}

DataShape TableDataset::shape() const {
  return {.kind = DataShape::Kind::kTable,
          .channels = 1,
          .height = 1,
          .width = columns_,
          .classes = classes_};
}

Batch TableDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
                           bool /*train*/) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, 1, 1, columns_}, at::kFloat), at::empty({count}, at::kLong)};
  auto* values = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    CheckIndex(index, size(), "row");
    values = std::copy_n(rows_.values.data() + index * columns_, columns_, values);
    *labels++ = rows_.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

DataShape TextDataset::shape() const {
  return {.kind = DataShape::Kind::kText,
          .classes = windows_.vocabulary(),
          .context = windows_.context()};
}

Batch TextDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                          bool train) const {
  const std::int64_t context = windows_.context();
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, context}, at::kLong), at::empty({count, context}, at::kLong)};
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  // The same for all windows of an epoch, so that they do not overlap.
  const std::int64_t shift = train ? windows_.ShiftOf(epoch) : 0;
  for (const std::int64_t index : indices) {
    CheckIndex(index, size(), "window");
    windows_.Copy(index, shift, inputs, targets);
    inputs += context;
    targets += context;
  }
  return batch;
}

}  // namespace muster::trainer
