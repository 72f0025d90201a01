#include "trainer/io/large_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace muster::trainer {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;
// No file system asks for more than a page.
constexpr std::size_t kAlignment = 4096;

bool SetDirect(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

void LargeOutput::Free::operator()(std::byte* bytes) const {
  std::free(bytes);
}

bool LargeOutput::Append(std::string_view bytes) {
  if (piece_ == nullptr) {
    piece_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kPiece)));
    if (piece_ == nullptr) throw std::bad_alloc();
  }
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kPiece - filled_);
    std::memcpy(piece_.get() + filled_, bytes.data(), count);
    filled_ += count;
    bytes.remove_prefix(count);
    if (filled_ < kPiece) continue;
    // Some file systems refuse here (tmpfs), some only when they are written to.
    if (!began_) direct_ = SetDirect(fd_, true);
    if (!WritePiece()) return false;
  }
  return true;
}

// What is left need not fill a block of the device, and so goes through the cache.
bool LargeOutput::Finish() {
  if (direct_ && !SetDirect(fd_, false)) return false;
  direct_ = false;
  return WritePiece();
}

bool LargeOutput::WritePiece() {
  began_ = true;
  const std::byte* next = piece_.get();
  while (filled_ > 0) {
    const ssize_t written = write(fd_, next, filled_);
    if (written >= 0) {
      next += written;
      filled_ -= static_cast<std::size_t>(written);
    } else if (errno == EINVAL && direct_) {
      // Also after a piece of which only an odd part was written.
      if (!SetDirect(fd_, false)) return false;
      direct_ = false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace muster::trainer
