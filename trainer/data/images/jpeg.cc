#include "trainer/data/images/jpeg.h"

#include <turbojpeg.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

struct JpegDestroyer {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using JpegDecoder = std::unique_ptr<std::remove_pointer_t<tjhandle>, JpegDestroyer>;

absl::Status JpegFailure(tjhandle handle) {
  return absl::InvalidArgumentError(absl::StrCat("truncated or damaged: ", tjGetErrorStr2(handle)));
}

// Whether libjpeg's warning is about bytes that belong to nothing, in a file that has its end.
// Bytes inside of compressed data never look like a marker, so an end after the last beginning of
// such data is the image's own, not that of a thumbnail ahead of it.
bool OnlyStrayBytes(tjhandle handle, const std::uint8_t* bytes, std::int64_t size) {
  if (tjGetErrorCode(handle) != TJERR_WARNING) return false;
  if (!absl::StrContains(tjGetErrorStr2(handle), "extraneous bytes before marker")) return false;
  const std::string_view file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  const std::size_t scan = file.rfind("\xff\xda");
  return scan != std::string_view::npos && file.find("\xff\xd9", scan) != std::string_view::npos;
}

// From inverted cyan, magenta, yellow and black to red, green and blue, as Pillow computes it.
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
  // For this image alone: after a damaged header a decoder of version 2.1 goes on in the middle of
  // it, with whatever image comes next. Making one takes microseconds.
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
  // What holds tables alone is no failure to libjpeg.
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
  // A small file can consist of thousands of scans, each of which goes over the whole image.
  const int decoded =
      tjDecompress2(decoder, bytes, length, inks ? cmyk.data() : image.pixels.data(), width,
                    /*pitch=*/0, height, inks ? TJPF_CMYK : TJPF_RGB, TJFLAG_LIMITSCANS);
  if (decoded != 0 && !OnlyStrayBytes(decoder, bytes, size)) return JpegFailure(decoder);
  if (inks) RgbOfCmyk(cmyk, &image.pixels);
  return image;
}

}  // namespace muster::trainer
