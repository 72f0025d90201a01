#include "trainer/data/open_data.h"

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/datasets/cifar.h"
#include "trainer/data/datasets/generated.h"
#include "trainer/data/datasets/idx_images.h"
#include "trainer/data/datasets/image_dataset.h"
#include "trainer/data/datasets/text_dataset.h"
#include "trainer/data/open_csv.h"
#include "trainer/data/open_image_folder.h"
#include "trainer/data/token_splits.h"

namespace muster::trainer {
namespace {

// Numbers that neither batches nor ranks divide.
constexpr std::int64_t kGeneratedTrain = 2050;
constexpr std::int64_t kGeneratedTest = 500;

// Images of the same shape, normalized as `options` know it, else as the training images are.
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
  // More than any image's side would only ever show black.
  constexpr int kMaxPadding = 64;
  if (options.crop_padding >= 0 && options.crop_padding <= kMaxPadding) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a crop padding of ", options.crop_padding,
                                                 " pixels: it must be from 0 to ", kMaxPadding));
}

// Images are read from one directory.
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

// The path of --test-data, or "" if there is none.
absl::StatusOr<std::string> OneTestPath(const DataOptions& options, const char* what) {
  const std::vector<std::string>& paths = options.test_paths;
  if (paths.size() <= 1) return paths.empty() ? std::string() : paths.front();
  return absl::InvalidArgumentError(
      absl::StrCat("--test-data names ", paths.size(), " paths, and ", what));
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
  absl::StatusOr<std::string> test = OneTestPath(options, "images are read from one directory");
  if (!test.ok()) return test.status();
  return OpenImageFolder({.list = {.directory = options.paths.front(),
                                   .test_directory = *std::move(test),
                                   .test_share = options.test_share,
                                   .seed = options.seed,
                                   .known_classes = options.known.classes,
                                   .labels_needed = options.labels_needed,
                                   .undivided = options.undivided},
                          .image_size = options.image_size,
                          .normalization = options.known.normalization,
                          .augmentation = options.augmentation});
}

absl::StatusOr<Splits> OpenTable(const DataOptions& options) {
  constexpr char kOneFile[] = "a table is read from one CSV file";
  if (options.paths.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data names ", options.paths.size(), " paths, and ", kOneFile));
  }
  absl::StatusOr<std::string> test = OneTestPath(options, kOneFile);
  if (!test.ok()) return test.status();
  return OpenCsv({.path = options.paths.front(),
                  .test_path = *std::move(test),
                  .test_share = options.test_share,
                  .seed = options.seed,
                  .target = options.target,
                  .known = options.known,
                  .labels_needed = options.labels_needed,
                  .undivided = options.undivided});
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

}  // namespace muster::trainer
