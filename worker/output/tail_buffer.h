// The last bytes of a stream: what a failure report shows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::worker {

inline constexpr std::size_t kMaxTail = 8 * 1024;

class TailBuffer {
 public:
  explicit TailBuffer(std::size_t limit = kMaxTail) : limit_(limit) {}

  void Append(std::string_view bytes);

  // The tail of everything appended, as TailOf makes it.
  std::string Text() const;

 private:
  const std::size_t limit_;
  // At least limit_ + 1 of the last bytes, at most twice as many, so that most appends move
  // nothing.
  std::string bytes_;
};

// The last `limit` bytes of `bytes`. If that cuts a line, the rest of it is dropped too, unless
// there is no other line. Needs one byte more than `limit` to see whether a line was cut.
std::string TailOf(std::string_view bytes, std::size_t limit);

}  // namespace muster::worker
