#include "trainer/data/open_data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/datasets/cifar.h"
#include "trainer/data/datasets/generated.h"
#include "trainer/data/datasets/generated_text.h"
#include "trainer/data/datasets/idx_images.h"
#include "trainer/data/datasets/image_dataset.h"
#include "trainer/data/datasets/mapped_file.h"
#include "trainer/data/datasets/text_dataset.h"

namespace muster::trainer {
namespace {

// Numbers that neither batches nor ranks divide.
constexpr std::int64_t kGeneratedTrain = 2050;
constexpr std::int64_t kGeneratedTest = 500;
constexpr std::int64_t kGeneratedTextBytes = std::int64_t{256} << 10;

Splits ImageSplits(LabelledImages train, LabelledImages test, const DataOptions& options) {
  const auto learn = std::make_shared<const LabelledImages>(std::move(train));
  const auto measure = std::make_shared<const LabelledImages>(std::move(test));
  const Normalization norm = MeasureNormalization(*learn);
  return {std::make_shared<ImageDataset>(learn, norm, options.augmentation),
          std::make_shared<ImageDataset>(measure, norm, AugmentationOptions{})};
}

absl::StatusOr<Splits> TextSplits(const TextRange& text, const std::string& what,
                                  const DataOptions& options) {
  if (options.context < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a context of ", options.context, " tokens: it must be at least 1"));
  }
  if (!(options.test_share > 0 && options.test_share < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("a test share of ", options.test_share,
                                                   " of the text: it must be between 0 and 1"));
  }
  const auto test_size =
      static_cast<std::int64_t>(static_cast<double>(text.size) * options.test_share);
  const std::int64_t train_size = text.size - test_size;
  // A window, and the byte after it, and whatever the shift of an epoch takes away. As a division,
  // because a context from the command line can be large enough to overflow a product.
  if (std::min(train_size, test_size) / 2 < options.context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "read ", what, ": its ", text.size, " bytes are too few for windows of ", options.context,
        " bytes with a share of ", options.test_share, " kept for testing"));
  }
  return Splits{
      std::make_shared<TextDataset>(TextRange{text.owner, text.begin, train_size}, options.context,
                                    options.seed),
      std::make_shared<TextDataset>(TextRange{text.owner, text.begin + train_size, test_size},
                                    options.context, options.seed)};
}

absl::StatusOr<Splits> OpenText(const DataOptions& options) {
  const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(options.path);
  if (!file.ok()) return file.status();
  return TextSplits({*file, (*file)->bytes(), (*file)->size()}, options.path, options);
}

absl::StatusOr<Splits> MakeText(const DataOptions& options) {
  const auto text =
      std::make_shared<const std::string>(GenerateText(kGeneratedTextBytes, /*seed=*/1));
  return TextSplits({text, reinterpret_cast<const std::uint8_t*>(text->data()),
                     static_cast<std::int64_t>(text->size())},
                    "the generated text", options);
}

absl::Status CheckAugmentation(const AugmentationOptions& options) {
  // More than any image's side would only ever show black.
  constexpr int kMaxPadding = 64;
  if (options.crop_padding >= 0 && options.crop_padding <= kMaxPadding) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a crop padding of ", options.crop_padding,
                                                 " pixels: it must be from 0 to ", kMaxPadding));
}

// Images are read from a directory.
absl::Status CheckImagePath(const DataOptions& options) {
  const bool images = options.kind == DataKind::kIdx || options.kind == DataKind::kCifar10;
  std::error_code ignored;
  if (!images || !std::filesystem::is_regular_file(options.path, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("read data from ", options.path,
                   ": it is a file, and images are read from a directory; text is what --model gpt "
                   "learns from"));
}

}  // namespace

absl::StatusOr<Splits> OpenData(const DataOptions& options) {
  absl::Status status = CheckAugmentation(options.augmentation);
  if (status.ok()) status = CheckImagePath(options);
  if (!status.ok()) return status;
  switch (options.kind) {
    case DataKind::kIdx: {
      absl::StatusOr<LabelledImages> train = ReadIdxImages(options.path, "train");
      if (!train.ok()) return train.status();
      absl::StatusOr<LabelledImages> test = ReadIdxImages(options.path, "t10k");
      if (!test.ok()) return test.status();
      return ImageSplits(*std::move(train), *std::move(test), options);
    }
    case DataKind::kCifar10: {
      absl::StatusOr<CifarImages> images = ReadCifar10(options.path);
      if (!images.ok()) return images.status();
      return ImageSplits(std::move(images->train), std::move(images->test), options);
    }
    case DataKind::kText:
      return OpenText(options);
    case DataKind::kGenerated:
      return ImageSplits(GenerateImageSet(kGeneratedTrain, /*seed=*/1),
                         GenerateImageSet(kGeneratedTest, /*seed=*/2), options);
    case DataKind::kGeneratedText:
      return MakeText(options);
  }
  return absl::InvalidArgumentError("no such kind of data");
}

}  // namespace muster::trainer
