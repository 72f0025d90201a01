// The lines that the benchmark's workers write, and a counter for those that arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::bench {

inline constexpr std::size_t kLineBytes = 100;
inline constexpr int kMaxRanks = 1000;

// "line 003:0000012345 xxx...", kLineBytes long including the line feed.
inline std::string NumberedLine(int rank, std::uint64_t number) {
  std::string line = "line 000:0000000000 ";
  for (std::size_t at = 7; rank > 0; rank /= 10) line[at--] += static_cast<char>(rank % 10);
  for (std::size_t at = 18; number > 0; number /= 10) line[at--] += static_cast<char>(number % 10);
  line.resize(kLineBytes - 1, 'x');
  line += '\n';
  return line;
}

// Reads a stream in pieces. A line counts if it ends with a complete NumberedLine, whatever
// precedes it, and its number is higher than that of its rank's previous line.
class LineCounter {
 public:
  void Feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      if (end == std::string_view::npos) {
        held_.append(bytes);
        return;
      }
      if (held_.empty()) {
        Look(bytes.substr(0, end));
      } else {
        Look(held_.append(bytes.substr(0, end)));
        held_.clear();
      }
      bytes.remove_prefix(end + 1);
    }
  }

  std::uint64_t lines() const { return lines_; }
  // Other lines that are not empty: parts of lines, lines out of order, or lines not from the
  // workers.
  std::uint64_t others() const { return others_; }

 private:
  void Look(std::string_view line) {
    constexpr std::size_t kSize = kLineBytes - 1;
    if (line.size() < kSize) return Other(line);
    line.remove_prefix(line.size() - kSize);
    if (!line.starts_with("line ") || line[8] != ':' || line[19] != ' ') return Other(line);
    const std::uint64_t rank = Number(line.substr(5, 3));
    const std::uint64_t number = Number(line.substr(9, 10));
    if (rank >= next_.size() || number < next_[rank] ||
        line.substr(20).find_first_not_of('x') != std::string_view::npos) {
      return Other(line);
    }
    next_[rank] = number + 1;
    ++lines_;
  }

  void Other(std::string_view line) { others_ += line.empty() ? 0 : 1; }

  // The value of `digits`; UINT64_MAX if there is anything but digits.
  static std::uint64_t Number(std::string_view digits) {
    std::uint64_t value = 0;
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') return UINT64_MAX;
      value = 10 * value + static_cast<std::uint64_t>(digit - '0');
    }
    return value;
  }

  // By rank: the lowest number that may come next.
  std::array<std::uint64_t, kMaxRanks> next_{};
  std::uint64_t lines_ = 0;
  std::uint64_t others_ = 0;
  // The incomplete line.
  std::string held_;
};

}  // namespace muster::bench
