// Cuts a stream of bytes where lines end, so that streams can be put together without mixing lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::launcher {

class WholeLines {
 public:
  // A line that is longer is cut.
  static constexpr std::size_t kMaxLine = 64 * 1024;

  // What can be passed on, with `bytes` added: whole lines, or nothing yet.
  std::string Add(std::string_view bytes) {
    const std::size_t end = bytes.rfind('\n');
    std::string ready;
    if (end != std::string_view::npos) {
      ready = std::move(rest_);
      rest_.clear();
      ready.append(bytes.substr(0, end + 1));
      bytes.remove_prefix(end + 1);
    }
    rest_.append(bytes);
    if (rest_.size() >= kMaxLine) ready += TakeRest();
    return ready;
  }

  // The line that was not ended.
  std::string TakeRest() {
    std::string rest = std::move(rest_);
    rest_.clear();
    return rest;
  }

 private:
  std::string rest_;
};

}  // namespace muster::launcher
