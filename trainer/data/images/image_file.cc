#include "trainer/data/images/image_file.h"

#include "trainer/data/datasets/mapped_file.h"
#include "trainer/data/datasets/unreadable.h"
#include "trainer/data/images/jpeg.h"
#include "trainer/data/images/png.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
