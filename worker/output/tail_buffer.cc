#include "worker/output/tail_buffer.h"

namespace muster::worker {

void TailBuffer::Append(std::string_view bytes) {
  const std::size_t keep = limit_ + 1;
  if (bytes.size() >= keep) {
    bytes.remove_prefix(bytes.size() - keep);
    bytes_.clear();
  }
  bytes_.append(bytes);
  if (bytes_.size() > 2 * keep) bytes_.erase(0, bytes_.size() - keep);
}

std::string TailBuffer::Text() const {
  return TailOf(bytes_, limit_);
}

std::string TailOf(std::string_view bytes, std::size_t limit) {
  if (bytes.size() <= limit) return std::string(bytes);
  const bool at_line_start = bytes[bytes.size() - limit - 1] == '\n';
  bytes.remove_prefix(bytes.size() - limit);
  if (!at_line_start) {
    const std::size_t newline = bytes.find('\n');
    // A newline that is the very last byte starts no line that could be shown.
    if (newline != std::string_view::npos && newline + 1 < bytes.size()) {
      bytes.remove_prefix(newline + 1);
    }
  }
  return std::string(bytes);
}

}  // namespace muster::worker
