#include "launcher/tree/frame.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kHeader = 4;

}  // namespace

std::string ToFrame(absl::string_view message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string frame;
  frame.reserve(kHeader + message.size());
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift & 0xff);
  frame.append(message.data(), message.size());
  return frame;
}

absl::Status FrameReader::FindGreeting() {
  const std::size_t found = bytes_.find(kGreeting.data(), 0, kGreeting.size());
  if (found != std::string::npos) {
    noise_.append(bytes_, 0, found);
    bytes_.erase(0, found + kGreeting.size());
    greeted_ = true;
    return absl::OkStatus();
  }
  // All but what may be the beginning of a greeting.
  if (bytes_.size() >= kGreeting.size()) {
    const std::size_t surely = bytes_.size() - kGreeting.size() + 1;
    noise_.append(bytes_, 0, surely);
    bytes_.erase(0, surely);
  }
  if (noise_.size() <= kMaxNoise) return absl::OkStatus();
  return absl::InvalidArgumentError("it is not Muster that answers there");
}

absl::StatusOr<std::optional<std::string>> FrameReader::Next() {
  if (!greeted_) {
    const absl::Status status = FindGreeting();
    if (!status.ok()) return status;
    if (!greeted_) return std::nullopt;
  }
  std::uint32_t size = 0;
  if (bytes_.size() - begin_ >= kHeader) {
    for (std::size_t i = 0; i < kHeader; ++i) {
      size = size << 8 | static_cast<unsigned char>(bytes_[begin_ + i]);
    }
    if (size > limit_) {
      return absl::InvalidArgumentError(
          absl::StrCat("a frame of ", size, " bytes, where ", limit_, " are the most"));
    }
  }
  if (bytes_.size() - begin_ < kHeader + size || bytes_.size() - begin_ < kHeader) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return std::nullopt;
  }
  std::string message = bytes_.substr(begin_ + kHeader, size);
  begin_ += kHeader + size;
  return message;
}

}  // namespace muster::launcher
